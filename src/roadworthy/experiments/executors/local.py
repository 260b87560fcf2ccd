"""Work in this process, or in several processes of this machine."""

import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import final

from roadworthy.experiments.work import Done, Task, perform

OnDone = Callable[[Task, Done | str], None]
"""Called in the driver with what a task gave, or with the traceback of its failure."""

TRIES = 3
"""How often a task is given to a worker before a worker's death counts as the task's failure."""


@final
@dataclass(frozen=True)
class Local:
    """`jobs` processes; one job works in the calling process."""

    jobs: int = 1

    def run(self, tasks: Iterable[Task], on_done: OnDone) -> None:
        if self.jobs == 1:
            for task in tasks:
                on_done(task, attempt(task))
        else:
            _in_processes(tasks, on_done, self.jobs)


def attempt(task: Task) -> Done | str:
    """One failing item is no reason to stop: its traceback is the answer."""
    try:
        return perform(task)
    except Exception:
        return traceback.format_exc()


def _in_processes(tasks: Iterable[Task], on_done: OnDone, jobs: int) -> None:
    waiting = iter(tasks)
    tries: dict[int, int] = {}
    again: list[Task] = []
    while True:
        spawn = multiprocessing.get_context("spawn")
        pool = ProcessPoolExecutor(jobs, mp_context=spawn, initializer=_serve, initargs=(os.getpid(),))
        running: dict[Future[Done | str], Task] = {}
        try:
            if _drain(pool, waiting, again, running, on_done, jobs):
                return
        except BrokenProcessPool:  # a worker died: everything it and its siblings had in hand is tried again
            for task in running.values():
                tries[id(task)] = tries.get(id(task), 0) + 1
                if tries[id(task)] >= TRIES:
                    on_done(task, f"the worker died {TRIES} times at this item (out of memory?)")
                else:
                    again.append(task)
        finally:
            _end(pool)


def _drain(
    pool: ProcessPoolExecutor,
    waiting: "Iterable[Task]",
    again: list[Task],
    running: dict[Future[Done | str], Task],
    on_done: OnDone,
    jobs: int,
) -> bool:
    """Keep the workers busy until nothing is left; few tasks are in flight, because each may carry a map."""
    source = iter(waiting)
    while True:
        while len(running) < jobs + 1 and (task := again.pop() if again else next(source, None)) is not None:
            again.append(task)  # until a worker has it: submitting to a broken pool raises
            future = pool.submit(attempt, task)
            running[future] = again.pop()
        if not running:
            return True
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            result = future.result()
            on_done(running.pop(future), result)


def _serve(driver: int) -> None:
    """A worker leaves Ctrl-C to its driver, which ends it; if the driver itself is killed, the worker goes too."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_outlive_not, args=(driver,), daemon=True).start()


def _outlive_not(driver: int) -> None:
    while os.getppid() == driver:
        time.sleep(0.5)
    os._exit(1)


def _end(pool: ProcessPoolExecutor) -> None:
    """At once: what a worker has in hand is not recorded, so nothing is lost by ending it."""
    workers = list((pool._processes or {}).values())
    pool.shutdown(wait=False, cancel_futures=True)
    for worker in workers:
        worker.terminate()
    for worker in workers:
        worker.join()
