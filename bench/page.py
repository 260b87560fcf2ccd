"""Everything that is made of a large experiment: 16 methods × 2 orders × 3 imputers × 9 fractions × 10,000 images.

From a saved run on disk: the first print, all tables, the page and the figures, in CPU seconds, with the peak of
memory. Pictures come from images and maps, which a saved run does not hold: what they add is measured with a few images
of noise.

python bench/page.py [--images 10000]            # target: 10 s and 1.5 GB for all of it
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import roadworthy as rw
from roadworthy.core.random import Key
from roadworthy.core.results import Point, Predictions
from roadworthy.experiments.comparison import Comparison
from roadworthy.experiments.figure_data import gather
from roadworthy.experiments.results import Results
from roadworthy.report.figures.catalog import write_all

METHODS, CLASSES, EXAMPLES = 16, 10, 4
FRACTIONS = tuple(round(0.1 * tenth, 1) for tenth in range(10))
"""nine, and the point at 0"""
IMPUTERS = {"linear": rw.NoisyLinear(), "fixed": rw.DatasetMean((0.5, 0.5, 0.5)), "image-mean": rw.imputers.ImageMean()}
TABLES = ("ranking", "scores", "curves", "pairwise", "plain_accuracy", "agreement", "warnings", "per_class")
PLOTS = ("ranking", "curves", "agreement", "ranks")


def made_up_predictions(images: int, seed: int = 0) -> dict[Point, Predictions]:
    """Images of different difficulty; each method loses them at its own fraction."""
    generator = np.random.default_rng(seed)
    ids, labels = np.arange(images), generator.integers(CLASSES, size=images)
    difficulty, predictions = generator.normal(size=images), {}
    for imputer in IMPUTERS:
        for method in range(METHODS):
            for order, sign in (("morf", -1), ("lerf", 1)):
                lost_at = 0.5 + sign * 0.02 * method + 0.2 * difficulty + 0.2 * generator.normal(size=images)
                for fraction in FRACTIONS:
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
    options = {"fractions": FRACTIONS[1:], "controls": (), "progress": False}
    labels = np.arange(EXAMPLES) % CLASSES
    return rw.compare(lambda x: x.mean(dim=(2, 3)).repeat(1, 4)[:, :CLASSES], (images, labels), maps,
                      imputers=IMPUTERS, **options)  # fmt: skip


def megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def timed(name: str, step: Callable[[], Any]) -> Any:
    started = time.process_time()
    result = step()
    print(f"  {name:28} {time.process_time() - started:6.2f} CPU s   peak {megabytes():5.0f} MB", flush=True)
    return result


def draw(comparison: Comparison, folder: Path) -> None:
    for name in PLOTS:
        getattr(comparison.plot, name)().savefig(folder / f"{name}.svg")


def measure(run: Path, out: Path) -> None:
    """In a process of its own, so that its peak of memory is its own."""
    before, started = megabytes(), time.process_time()
    comparison = timed("reading", lambda: rw.load(run))
    timed("first print", lambda: str(comparison))
    timed("all tables", lambda: [getattr(comparison, table)() for table in TABLES])
    page = timed("page", lambda: comparison.report(out / "page.html"))
    timed("figures of comparison.plot", lambda: draw(comparison, out))
    data = timed("data of `figures`", lambda: gather(comparison, run))
    paths, _ = timed("drawing `figures`", lambda: write_all(data, out))
    seconds = time.process_time() - started
    print(
        f"  all: {seconds:.1f} CPU s, peak {megabytes():.0f} MB, {before:.0f} MB of them before reading; "
        f"page of {page.stat().st_size / 1e6:.1f} MB, {len(paths)} files of figures and tables"
    )
    for size in (32, 224):
        few = comparison_of_noise(size)
        str(few)
        page = timed(f"page with pictures, {size} pixels", lambda few=few: few.report(out / "page.html"))
        print(f"    {page.stat().st_size / 1e6:.1f} MB; {EXAMPLES} images")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--images", type=int, default=10_000)
    parser.add_argument("--run", type=Path, help="a saved run to measure in this process")
    options = parser.parse_args()
    if options.run:
        measure(options.run, options.run.parent)
        return
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        Comparison(Results(made_up_predictions(options.images))).save(run)
        print(
            f"{METHODS} methods × 2 orders × {len(IMPUTERS)} imputers × {len(FRACTIONS) - 1} fractions × "
            f"{options.images:,} images",
            flush=True,
        )
        subprocess.run([sys.executable, __file__, "--run", str(run)], check=True, env=os.environ)


if __name__ == "__main__":
    main()
