"""Work on a Ray cluster: `pip install 'roadworthy[ray]'`. Each node needs data and weights at the plan's paths."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, final

from roadworthy.core.errors import MissingExtraError
from roadworthy.experiments.executors.local import TRIES, OnDone, attempt
from roadworthy.experiments.work import Task


@final
@dataclass(frozen=True)
class Ray:
    """A cluster at `address`, or one started for this run ("local")."""

    address: str = "local"

    def run(self, tasks: Iterable[Task], on_done: OnDone) -> None:
        ray = _imported()
        started = not ray.is_initialized()
        if started:
            ray.init(address=self.address, log_to_driver=False, logging_level="WARNING")
        try:
            _drain(ray, iter(tasks), on_done)
        finally:
            if started:
                ray.shutdown()


def _imported() -> Any:
    try:
        import ray
    except ImportError as error:
        raise MissingExtraError("the ray executor needs Ray: pip install 'roadworthy[ray]'") from error
    return ray


def _drain(ray: Any, tasks: Any, on_done: OnDone) -> None:
    """As many tasks in flight as the cluster has room for, and one more; a lost worker's task is tried again by Ray."""
    running: dict[Any, Task] = {}
    remote = ray.remote(attempt)
    while True:
        while len(running) < _room(ray) and (task := next(tasks, None)) is not None:
            options = {"num_cpus": task.plan.threads, "num_gpus": 1 if ray.cluster_resources().get("GPU") else 0}
            running[remote.options(max_retries=TRIES - 1, **options).remote(task)] = task
        if not running:
            return
        (reference,), _ = ray.wait(list(running), num_returns=1)
        task = running.pop(reference)
        try:
            result = ray.get(reference)
        except ray.exceptions.RayError as error:
            result = f"the worker was lost {TRIES} times: {error}"
        on_done(task, result)


def _room(ray: Any) -> int:
    return int(ray.cluster_resources().get("CPU", 1)) + 1
