"""Compute on a Ray cluster: `pip install 'roadworthy[ray]'`. Each node needs data and weights at the plan's paths.

Ray runs whatever it is sent, on every node: use it in a trusted network only (docs/security.md).
"""

import re
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, final

from roadworthy.core.errors import ExecutorError, MissingExtraError
from roadworthy.experiments.executors.in_process import attempt
from roadworthy.experiments.runner import Outcome, Task
from roadworthy.experiments.worker import Worker

TRIES = 3


@final
@dataclass(frozen=True, eq=False)
class Ray:
    """A cluster at `address`, or one started for this run ("local"). An actor per worker builds and checks its own."""

    make_worker: Callable[[], Worker]
    address: str = "local"
    threads: int = 1

    @contextmanager
    def started(self) -> Iterator["_Session"]:
        ray = _imported()
        ours = not ray.is_initialized()
        if ours:
            _connect(ray, self.address)
        try:
            yield _Session(ray, self)
        finally:
            if ours:
                ray.shutdown()


def _connect(ray: Any, address: str) -> None:
    try:
        _check_reachable(address)
        ray.init(address=address, log_to_driver=False, logging_level="WARNING")
    except (RuntimeError, ValueError, OverflowError, OSError, ray.exceptions.RayError) as error:
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise ExecutorError(
            f"the Ray cluster at {address!r} cannot be reached ({reason}): check the address, and the token if it "
            'has one (RAY_AUTH_MODE=token), or start one here with address="local"'
        ) from error


def _check_reachable(address: str) -> None:
    """Ray itself waits for minutes."""
    match = re.fullmatch(r"(?:ray://)?\[?([^\[\]/]+)\]?:(\d+)", address)
    if match:
        socket.create_connection((match[1], int(match[2])), timeout=10).close()


def _imported() -> Any:
    try:
        import ray
    except ImportError as error:
        raise MissingExtraError("the ray executor needs Ray: pip install 'roadworthy[ray]'") from error
    return ray


class _Actor:
    """Why its worker could not be built is raised by `attempt`: Ray would only say that the actor died."""

    def __init__(self, make_worker: Callable[[], Worker]):
        self._worker: Worker | Exception
        try:
            self._worker = make_worker()
        except Exception as error:
            self._worker = error

    def attempt(self, task: Task) -> Outcome:
        if isinstance(self._worker, Exception):
            raise self._worker
        return attempt(self._worker, task)


class _Session:
    def __init__(self, ray: Any, executor: Ray):
        self._ray, resources = ray, ray.cluster_resources()
        count = max(1, int(resources.get("CPU", 1)) // executor.threads)
        gpus = min(1.0, resources.get("GPU", 0) / count)
        options = {"num_cpus": executor.threads, "num_gpus": gpus, "max_restarts": TRIES, "max_task_retries": TRIES - 1}
        actor = ray.remote(_Actor).options(**options)
        self._idle = [actor.remote(executor.make_worker) for _ in range(count)]
        self._running: dict[Any, tuple[Any, Task]] = {}

    @property
    def room(self) -> int:
        return len(self._idle)

    def submit(self, task: Task) -> None:
        actor = self._idle.pop()
        self._running[actor.attempt.remote(task)] = actor, task

    def completed(self) -> tuple[Task, Outcome]:
        (reference,), _ = self._ray.wait(list(self._running), num_returns=1)
        actor, task = self._running.pop(reference)
        self._idle.append(actor)
        try:
            return task, self._ray.get(reference)
        except self._ray.exceptions.RayTaskError as error:
            raise error.cause from error
        except self._ray.exceptions.RayError as error:
            return task, Outcome([], 0.0, f"the worker was lost {TRIES} times: {error}")
