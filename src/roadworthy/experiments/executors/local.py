"""Compute in several processes of this machine."""

import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import final

from roadworthy.core.errors import ExecutorError
from roadworthy.core.orphans import WatchedContext, end_with
from roadworthy.experiments.executors.in_process import attempt
from roadworthy.experiments.runner import Outcome, Task
from roadworthy.experiments.worker import Worker

TRIES = 3
"""How many workers may die at a task before it counts as failed."""

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
        self._suspects: list[Task] = []
        """Tasks during which a worker died. They are tried one by one, so that none is blamed for another."""
        self._ended: list[tuple[Task, Outcome]] = []
        self._open()

    def _open(self) -> None:
        spawn = WatchedContext()
        # Workers end when this pipe is closed. Setting an Event would hang if a worker was killed while waiting for it.
        self._watched, self._open_end = spawn.Pipe(duplex=False)
        self._pool = ProcessPoolExecutor(
            self._executor.jobs,
            mp_context=spawn,
            initializer=_serve,
            initargs=(os.getpid(), self._watched, self._executor.make_worker),
        )

    @property
    def room(self) -> int:
        """One more than there are workers: each task may carry maps."""
        if self._suspects:
            return 0
        return self._executor.jobs + 1 - len(self._running) - len(self._ended)

    def submit(self, task: Task) -> None:
        try:
            with _without_interrupts():
                self._running[self._pool.submit(_attempt, task)] = task
        except BrokenProcessPool:
            self._restart([task])
        except (RuntimeError, OSError) as error:  # no memory, processes or descriptors left for another worker
            raise ExecutorError(f"a worker could not be started ({error}): free memory, or use fewer jobs") from error

    def completed(self) -> tuple[Task, Outcome]:
        while not self._ended:
            if self._suspects and not self._running:
                self.submit(self._suspects[0])
            for future in wait(self._running, return_when=FIRST_COMPLETED).done:
                try:
                    outcome = future.result()
                except BrokenProcessPool:
                    self._restart([])
                    break
                task = self._running.pop(future)
                self._suspects = [suspect for suspect in self._suspects if suspect is not task]
                return task, outcome
        return self._ended.pop()

    def _restart(self, tasks: list[Task]) -> None:
        """A worker died: the tasks that were running are suspects, and lost after too many tries."""
        running, self._running = self._running, {}
        self.close()
        done = [future for future in running if not future.cancelled() and future.exception() is None]
        self._ended += [(running[future], future.result()) for future in done]
        unfinished = [*(task for future, task in running.items() if future not in done), *tasks]
        self._open()
        self._tries.update(task.id for task in unfinished)
        suspects = {task.id: task for task in (*unfinished, *self._suspects)}
        self._suspects = [task for task in suspects.values() if self._tries[task.id] < TRIES]
        failure = f"a worker died {TRIES} times at this item (out of memory?)"
        self._ended += [(task, Outcome([], 0.0, failure)) for task in suspects.values() if task not in self._suspects]

    def close(self) -> None:
        """At once: what is being computed is not recorded, so nothing is lost by ending it."""
        self._open_end.close()
        with suppress(RuntimeError):  # where its thread could not be started
            self._pool.shutdown(wait=True, cancel_futures=True)
        self._watched.close()


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """A worker that starts here inherits that Ctrl-C is blocked: it must not print a traceback while it imports.

    The driver gets a Ctrl-C that came in between afterwards.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if hasattr(signal, "pthread_sigmask") else None
    try:
        yield
    finally:
        if before is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


_worker: Worker | Exception | None = None
"""Of a worker process: built once, when the process starts; or why it could not be."""


def _serve(driver: int, watched: Connection, make_worker: MakeWorker) -> None:
    """A worker leaves Ctrl-C to its driver and ends with it."""
    global _worker
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        end_with(driver, watched)
        _worker = make_worker()
    except Exception as error:
        _worker = error


def _attempt(task: Task) -> Outcome:
    """Why a worker could not be built is raised, and ends the run: no item can be computed."""
    if not isinstance(_worker, Worker):
        raise _worker or RuntimeError("the worker was not built")
    return attempt(_worker, task)
