"""The page of a large study: 16 methods × 2 orders × 3 imputers × 8 fractions × 10,000 images, read from a store.

python bench/page.py            # the goal: 30 s and 8 MB
"""

import tempfile
import time
from pathlib import Path

import numpy as np

import roadworthy as rw
from roadworthy.core.masks import PAPER_FRACTIONS
from roadworthy.core.random import Key
from roadworthy.core.results import Point, Predictions
from roadworthy.core.types import Batch
from roadworthy.experiments.comparison import Comparison
from roadworthy.experiments.stores.run_directory import Store, save_predictions
from roadworthy.experiments.study import Examples
from roadworthy.imputers import DatasetMean, ImageMean, NoisyLinear
from roadworthy.report.html.page import write_page

IMAGES, METHODS, CLASSES = 10_000, 16, 10


def study(imputers: list[str], seed: int = 0) -> dict[Point, Predictions]:
    """Images of different difficulty; each method keeps or loses them at a share of its own."""
    generator = np.random.default_rng(seed)
    ids, labels = np.arange(IMAGES), generator.integers(CLASSES, size=IMAGES)
    hard, predictions = generator.normal(size=IMAGES), {}
    for imputer in imputers:
        for method in range(METHODS):
            for order, sign in (("morf", -1), ("lerf", 1)):
                endurance = 0.5 + sign * 0.02 * method + 0.2 * hard + 0.2 * generator.normal(size=IMAGES)
                for fraction in PAPER_FRACTIONS:
                    predicted = np.where(endurance > fraction, labels, (labels + 1) % CLASSES)
                    probability = 1 / (1 + np.exp(-10 * (endurance - fraction))).astype(np.float32)
                    point = Point(f"method {method}", order, imputer, "no-retrain", fraction, 0)
                    predictions[point] = Predictions(ids, labels, predicted, probability)
    return predictions


def examples(predictions: dict[Point, Predictions], size: int, images: int = 4) -> Examples:
    """Noise for pictures: nothing is harder to compress."""
    one, key = next(iter(predictions.values())), Key(0)
    labels = rw.datasets.Arrays(np.zeros((images, 3, 1, 1), np.float32), one.labels[:images])
    (batch,) = labels.batches(images)
    pixels = key.fold("pixels").uniform(range(images), (3, size, size))
    names = {point.method for point in predictions}
    maps = {name: key.fold(name).uniform(range(images), (size, size)) for name in names}
    return Examples(Batch(batch.ids, pixels, batch.labels), maps, batch.labels < 0)


def main() -> None:
    imputers = {"linear": NoisyLinear(), "fixed": DatasetMean((0.5, 0.5, 0.5)), "image-mean": ImageMean()}
    made = study(list(imputers))
    with tempfile.TemporaryDirectory() as folder:
        save_predictions(made, Path(folder) / "store")
        for size in (32, 224):
            started = time.process_time()
            predictions = Store(Path(folder) / "store").predictions()
            read = time.process_time() - started
            comparison = Comparison(predictions, (), imputers, examples(predictions, size))
            found = comparison.findings()
            told = time.process_time() - started
            page = write_page(Path(folder) / "page.html", found)
            seconds = time.process_time() - started
            print(
                f"{METHODS} methods × 2 orders × {len(imputers)} imputers × {len(PAPER_FRACTIONS)} fractions × "
                f"{IMAGES:,} images, pictures of {size} pixels: {seconds:.1f} CPU s (reading {read:.1f}, tables and "
                f"fills {told - read:.1f}, page {seconds - told:.1f}), {page.stat().st_size / 1e6:.1f} MB"
            )


if __name__ == "__main__":
    main()
