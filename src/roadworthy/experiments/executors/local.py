"""Compute in several processes of this machine."""

import multiprocessing
import os
import signal
import threading
import traceback
from collections import Counter, deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.synchronize import Event
from typing import final

from roadworthy.experiments.executors.in_process import attempt
from roadworthy.experiments.runner import Outcome, Task
from roadworthy.experiments.worker import Worker

TRIES = 3
"""How often a task is given to a worker before the worker's death counts as the task's failure."""

MakeWorker = Callable[[], Worker]


@final
@dataclass(frozen=True, eq=False)
class Local:
    """`jobs` processes, each of which builds its own worker and checks it with `make_worker`."""

    make_worker: MakeWorker
    jobs: int

    @contextmanager
    def started(self) -> Iterator["_Session"]:
        session = _Session(self)
        try:
            yield session
        finally:
            session.close()


class _Session:
    def __init__(self, executor: Local):
        self._executor = executor
        self._tries: Counter[str] = Counter()
        self._running: dict[Future[Outcome], Task] = {}
        self._suspects: deque[Task] = deque()
        """tasks to try again alone, because one of them may have ended its worker"""
        self._ended: list[tuple[Task, Outcome]] = []
        self._open()

    def _open(self) -> None:
        spawn = multiprocessing.get_context("spawn")
        self._stop = spawn.Event()
        self._pool = ProcessPoolExecutor(
            self._executor.jobs,
            mp_context=spawn,
            initializer=_serve,
            initargs=(os.getpid(), self._stop, self._executor.make_worker),
        )

    @property
    def room(self) -> int:
        """One more than there are workers: each task may carry maps."""
        return 0 if self._suspects else self._executor.jobs + 1 - len(self._running) - len(self._ended)

    def submit(self, task: Task) -> None:
        try:
            self._running[self._pool.submit(_attempt, task)] = task
        except BrokenProcessPool:
            self._restart()
            self._suspects.append(task)

    def completed(self) -> tuple[Task, Outcome]:
        while not self._ended:
            if self._suspects and not self._running:
                self.submit(self._suspects.popleft())
                continue
            for future in wait(self._running, return_when=FIRST_COMPLETED).done:
                try:
                    outcome = future.result()
                except BrokenProcessPool:
                    self._restart()
                    break
                return self._running.pop(future), outcome
        return self._ended.pop()

    def _restart(self) -> None:
        """A worker died. What was running is tried again, each alone; only a task that was alone is given up."""
        self.close()
        running, self._running = self._running, {}
        for future, task in running.items():
            if not future.cancelled() and not future.exception():
                self._ended.append((task, future.result()))
                continue
            self._tries[task.id] += 1
            if len(running) == 1 and self._tries[task.id] >= TRIES:
                failure = f"a worker died {TRIES} times at this item (out of memory?)"
                self._ended.append((task, Outcome([], 0.0, failure)))
            else:
                self._suspects.append(task)
        self._open()

    def close(self) -> None:
        """At once: what is being computed is not recorded, so nothing is lost by ending it."""
        self._stop.set()
        self._pool.shutdown(wait=True, cancel_futures=True)


_worker: Worker | Outcome = Outcome([], 0.0, "the worker was not built")
"""Of a worker process: built once, when the process starts; or why it could not be."""


def _serve(driver: int, stop: Event, make_worker: MakeWorker) -> None:
    """A worker leaves Ctrl-C to its driver and ends with it."""
    global _worker
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(driver, stop), daemon=True).start()
    try:
        _worker = make_worker()
    except Exception as error:
        _worker = Outcome([], 0.0, traceback.format_exc(), f"{type(error).__name__}: {error}")


def _attempt(task: Task) -> Outcome:
    return _worker if isinstance(_worker, Outcome) else attempt(_worker, task)


def _end_with(driver: int, stop: Event) -> None:
    while os.getppid() == driver and not stop.wait(0.2):
        pass
    os._exit(1)
