"""All tables of a large experiment: 10,000 images × 12 methods × 8 fractions × 2 orders, 2,000 bootstrap draws.

python bench/statistics.py            # target: under 10 s on 2 cores and under 1 GB
"""

import resource
import time

import numpy as np

from roadworthy import statistics
from roadworthy.core.masks import PAPER_FRACTIONS
from roadworthy.core.results import Point, Predictions
from roadworthy.statistics.bootstrap import DRAWS

IMAGES, METHODS, CLASSES = 10_000, 12, 10


def made_up_predictions(seed: int = 0) -> dict[Point, Predictions]:
    """Images of different difficulty; each method loses them at its own fraction."""
    generator = np.random.default_rng(seed)
    ids, labels = np.arange(IMAGES), generator.integers(CLASSES, size=IMAGES)
    difficulty = generator.normal(size=IMAGES)
    predictions = {}
    for method in range(METHODS):
        for order, sign in (("morf", -1), ("lerf", 1)):
            lost_at = 0.5 + sign * 0.02 * method + 0.2 * difficulty + 0.2 * generator.normal(size=IMAGES)
            for fraction in PAPER_FRACTIONS:
                probability = 1 / (1 + np.exp(-10 * (lost_at - fraction))).astype(np.float32)
                predicted = np.where(lost_at > fraction, labels, (labels + 1) % CLASSES)
                point = Point(f"method {method}", order, "linear", "no-retrain", fraction, 0)
                predictions[point] = Predictions(ids, labels, predicted, probability)
    return predictions


def main() -> None:
    predictions, total = made_up_predictions(), 0.0
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    tables = {}
    steps = {
        "ranking": lambda: statistics.ranking(predictions),
        "pairwise": lambda: statistics.pairwise(predictions),
        "curves": lambda: statistics.curves(predictions),
        "agreement": lambda: statistics.agreement(predictions),
        "warnings": lambda: statistics.warnings(predictions, tables["ranking"], tables["pairwise"]),
        "standings": lambda: statistics.standings(tables["ranking"], tables["pairwise"], (), statistics.MARGIN),
    }
    print(f"{IMAGES:,} images × {METHODS} methods × {len(PAPER_FRACTIONS)} fractions × 2 orders × {DRAWS:,} draws")
    for name, step in steps.items():
        started = time.perf_counter()
        tables[name] = step()
        total += time.perf_counter() - started
        print(f"  {name:12} {time.perf_counter() - started:6.2f} s")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"  all          {total:6.2f} s   peak {peak:.0f} MB, of which {before:.0f} MB before the tables")
    print(*(standing.state for standing in tables["standings"].values()))


if __name__ == "__main__":
    main()
