"""Compute in the calling process."""

import time
import traceback
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import final

from roadworthy.experiments.compute import compute
from roadworthy.experiments.runner import Outcome, Task
from roadworthy.experiments.worker import Worker


@final
@dataclass(frozen=True, eq=False)
class InProcess:
    """`raises`: let errors through instead of recording them."""

    worker: Worker
    raises: bool = False

    @contextmanager
    def started(self) -> Iterator["_Session"]:
        yield _Session(self)


class _Session:
    def __init__(self, executor: InProcess):
        self._executor = executor
        self._tasks: deque[Task] = deque()

    @property
    def room(self) -> int:
        return 1 - len(self._tasks)

    def submit(self, task: Task) -> None:
        self._tasks.append(task)

    def completed(self) -> tuple[Task, Outcome]:
        task = self._tasks.popleft()
        if self._executor.raises:
            return task, perform(self._executor.worker, task)
        return task, attempt(self._executor.worker, task)


def perform(worker: Worker, task: Task) -> Outcome:
    started, cpu_started = time.perf_counter(), time.process_time()
    computed = {item.id: arrays for item, arrays in compute(worker, task.items, task.inputs, task.checkpoint)}
    seconds, cpu_seconds = time.perf_counter() - started, time.process_time() - cpu_started
    return Outcome([computed[item.id] for item in task.items], seconds, cpu_seconds=cpu_seconds)


def attempt(worker: Worker, task: Task) -> Outcome:
    """A failing item is no reason to stop the others: its traceback is the outcome."""
    try:
        return perform(worker, task)
    except Exception:
        return Outcome([], 0.0, traceback.format_exc())
