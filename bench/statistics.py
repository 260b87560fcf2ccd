"""All tables of a large study: 10,000 images × 12 methods × 8 fractions × 2 orders, 2,000 bootstrap draws.

python bench/statistics.py            # the goal: under 10 s on 2 cores and under 1 GB
"""

import resource
import time

import numpy as np

from roadworthy import statistics
from roadworthy.core.masks import PAPER_FRACTIONS
from roadworthy.core.results import Point, Predictions
from roadworthy.statistics.bootstrap import DRAWS

IMAGES, METHODS, CLASSES = 10_000, 12, 10


def study(seed: int = 0) -> dict[Point, Predictions]:
    """Images of different difficulty; each method keeps or loses them at a share of its own."""
    generator = np.random.default_rng(seed)
    ids, labels = np.arange(IMAGES), generator.integers(CLASSES, size=IMAGES)
    hard = generator.normal(size=IMAGES)
    predictions = {}
    for method in range(METHODS):
        for order, sign in (("morf", -1), ("lerf", 1)):
            endurance = 0.5 + sign * 0.02 * method + 0.2 * hard + 0.2 * generator.normal(size=IMAGES)
            for fraction in PAPER_FRACTIONS:
                hit = endurance > fraction
                probability = 1 / (1 + np.exp(-10 * (endurance - fraction))).astype(np.float32)
                predicted = np.where(hit, labels, (labels + 1) % CLASSES)
                point = Point(f"method {method}", order, "linear", "no-retrain", fraction, 0)
                predictions[point] = Predictions(ids, labels, predicted, probability)
    return predictions


def main() -> None:
    predictions, total = study(), 0.0
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    tables = {}
    steps = {
        "ranking": lambda: statistics.ranking(predictions),
        "pairwise": lambda: statistics.pairwise(predictions),
        "curves": lambda: statistics.curves(predictions),
        "agreement": lambda: statistics.agreement(predictions),
        "warnings": lambda: statistics.warnings(predictions, tables["ranking"], tables["pairwise"]),
        "summary": lambda: statistics.summary(tables["ranking"], tables["pairwise"]),
    }
    print(f"{IMAGES:,} images × {METHODS} methods × {len(PAPER_FRACTIONS)} fractions × 2 orders × {DRAWS:,} draws")
    for name, step in steps.items():
        started = time.perf_counter()
        tables[name] = step()
        total += time.perf_counter() - started
        print(f"  {name:12} {time.perf_counter() - started:6.2f} s")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"  all          {total:6.2f} s   peak {peak:.0f} MB, of which {before:.0f} MB before the first table")
    print(tables["summary"])


if __name__ == "__main__":
    main()
