"""The overhead of a run directory: milliseconds per item whose computation takes no time, and `status` of a large one.

python bench/run_directory.py [--points 5000]
"""

import argparse
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from roadworthy.experiments.design import Design
from roadworthy.experiments.fingerprints import Fingerprints
from roadworthy.experiments.pending import survey
from roadworthy.experiments.plan_design import design_of
from roadworthy.experiments.plans.reading import plan_from
from roadworthy.experiments.runner import Outcome, Task, execute, grouping
from roadworthy.experiments.stores.run_directory import RunDirectory

IMAGES = 8


def design(seeds: int) -> Design:
    plan = plan_from(
        {
            "data": {"name": "digits"},
            "model": {"name": "small-cnn"},
            "methods": {"IG": "ig"},
            "evaluation": {"controls": [], "orders": ["morf"], "seeds": list(range(seeds))},
        }
    )
    return design_of(plan, Fingerprints("model", IMAGES, IMAGES, ("data",)))


class Instant:
    """An executor whose tasks take no time: what is left is overhead."""

    def __init__(self) -> None:
        self.room, self.task = 1, None

    @contextmanager
    def started(self):
        yield self

    def submit(self, task: Task) -> None:
        self.room, self.task = 0, task

    def completed(self):
        self.room = 1
        return self.task, Outcome([_arrays(item.kind) for item in self.task.items], 0.0)


def _arrays(kind: str):
    if kind == "maps":
        return {"maps": np.zeros((IMAGES, 4, 4), np.float32), "ties": np.zeros((IMAGES, 2))}
    integers = {name: np.zeros(IMAGES, np.int64) for name in ("labels", "predicted")}
    return {"ids": np.arange(IMAGES), **integers, "probability": np.zeros(IMAGES, np.float32)}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--points", type=int, default=5000)
    points = parser.parse_args().points
    with tempfile.TemporaryDirectory() as folder:
        store, group_key = RunDirectory(Path(folder)), grouping({"IG": "IG"})
        for count in (points, 2 * points):
            plan, before = design(count // 10), len(store.ids())
            started = time.perf_counter()
            execute(plan, store, Instant(), group_key)
            seconds, items = time.perf_counter() - started, len(store.ids()) - before
            print(f"{count:,} points: {items:,} items in {seconds:.1f} s, {seconds / items * 1e3:.2f} ms each")
        started = time.perf_counter()
        state = survey(design(2 * points // 10), store)
        failures, _ = store.failures(), store.manifest()
        done, seconds = len(state.goals) - len(state.missing), time.perf_counter() - started
        print(f"status: {done:,} of {len(state.goals):,} items done, {len(failures)} failed, in {seconds:.2f} s")


if __name__ == "__main__":
    main()
