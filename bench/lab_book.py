"""What the lab book itself costs: overhead per tiny trial, and `status` on a large store.

python bench/lab_book.py
"""

import tempfile
import time
from pathlib import Path

import numpy as np

from roadworthy.core.results import Predictions
from roadworthy.experiments import runner
from roadworthy.experiments.items import Fingerprints
from roadworthy.experiments.plans.reading import plan_from
from roadworthy.experiments.stores.run_directory import Store
from roadworthy.experiments.work import Done

PRINTS = Fingerprints("data", "model")


def tiny_plan(seeds: int):
    return plan_from(
        {
            "data": {"name": "digits"},
            "model": {"name": "small-cnn"},
            "methods": {"IG": "ig"},
            "evaluation": {"controls": [], "orders": ["morf"], "seeds": list(range(seeds))},
        }
    )


class Instant:
    """An executor whose work takes no time: what is left is ours."""

    def run(self, tasks, on_done):
        prediction = Predictions(np.arange(8), np.zeros(8, int), np.zeros(8, int), np.zeros(8, np.float32))
        for task in tasks:
            fractions = getattr(task, "fractions", None)
            results = (
                dict.fromkeys(fractions, prediction)
                if fractions
                else {name: np.zeros((8, 4, 4), np.float32) for name in task.methods}
            )
            on_done(task, Done(results, 0.0))


def main() -> None:
    runner.fingerprints = lambda plan: PRINTS
    runner.groups = lambda plan, names: [tuple(names)] if names else []
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder))
        for trials in (5_000, 10_000):
            plan = tiny_plan(trials // 10)
            started = time.perf_counter()
            runner.run(plan, store, Instant(), lambda event: None, lambda work, complaints: None)
            seconds = time.perf_counter() - started
            print(
                f"{trials:,} trials: {seconds:.1f} s for those that were missing, {seconds / 5_000 * 1e3:.2f} ms each"
            )
        started = time.perf_counter()
        left = runner.pending(plan, store, PRINTS)
        store.failures(), store.manifest()
        print(f"status of {left.total:,} items: {time.perf_counter() - started:.2f} s")


if __name__ == "__main__":
    main()
