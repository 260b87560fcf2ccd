"""The report of a large experiment: 16 methods × 2 orders × 3 imputers × 8 fractions × 10,000 images, from disk.

python bench/page.py [--images 10000]            # target: 30 s and 8 MB
"""

import argparse
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

import roadworthy as rw
from roadworthy.core.masks import PAPER_FRACTIONS
from roadworthy.core.random import Key
from roadworthy.core.results import Point, Predictions
from roadworthy.experiments.comparison import Comparison
from roadworthy.experiments.results import Results
from roadworthy.report.html.page import write_page

METHODS, CLASSES, EXAMPLES = 16, 10, 4
IMPUTERS = {"linear": rw.NoisyLinear(), "fixed": rw.DatasetMean((0.5, 0.5, 0.5)), "image-mean": rw.imputers.ImageMean()}


def made_up_predictions(images: int, seed: int = 0) -> dict[Point, Predictions]:
    """Images of different difficulty; each method loses them at its own fraction."""
    generator = np.random.default_rng(seed)
    ids, labels = np.arange(images), generator.integers(CLASSES, size=images)
    difficulty, predictions = generator.normal(size=images), {}
    for imputer in IMPUTERS:
        for method in range(METHODS):
            for order, sign in (("morf", -1), ("lerf", 1)):
                lost_at = 0.5 + sign * 0.02 * method + 0.2 * difficulty + 0.2 * generator.normal(size=images)
                for fraction in PAPER_FRACTIONS:
                    predicted = np.where(lost_at > fraction, labels, (labels + 1) % CLASSES)
                    probability = 1 / (1 + np.exp(-10 * (lost_at - fraction))).astype(np.float32)
                    point = Point(f"method {method}", order, imputer, "no-retrain", fraction, 0)
                    predictions[point] = Predictions(ids, labels, predicted, probability)
    return predictions


def comparison_of_noise(size: int) -> Comparison:
    """Images and maps of noise, for the examples: nothing is harder to compress."""
    key, ids = Key(0), range(EXAMPLES)
    images = key.fold("pixels").uniform(ids, (3, size, size))
    maps = {f"method {number}": key.fold(str(number)).uniform(ids, (size, size)) for number in range(METHODS)}
    options = {"fractions": PAPER_FRACTIONS[1:], "controls": (), "progress": False}
    labels = np.arange(EXAMPLES) % CLASSES
    return rw.compare(lambda x: x.mean(dim=(2, 3)).repeat(1, 4)[:, :CLASSES], (images, labels), maps,
                      imputers=IMPUTERS, **options)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--images", type=int, default=10_000)
    images = parser.parse_args().images
    with tempfile.TemporaryDirectory() as folder:
        Comparison(Results(made_up_predictions(images))).save(Path(folder) / "run")
        for size in (32, 224):
            source = comparison_of_noise(size).source
            started = time.process_time()
            loaded = rw.load(Path(folder) / "run")
            read = time.process_time() - started
            findings = replace(loaded, source=source).findings()
            computed = time.process_time() - started
            page = write_page(Path(folder) / "page.html", findings)
            seconds = time.process_time() - started
            print(
                f"{METHODS} methods × 2 orders × {len(IMPUTERS)} imputers × {len(PAPER_FRACTIONS)} fractions × "
                f"{images:,} images, examples of {size} pixels: {seconds:.1f} CPU s (reading {read:.1f}, tables and "
                f"examples {computed - read:.1f}, page {seconds - computed:.1f}), {page.stat().st_size / 1e6:.1f} MB"
            )


if __name__ == "__main__":
    main()
