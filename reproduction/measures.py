"""What the paper reports beside its experiments: correlation of neighboring pixels, cost per image in CPU seconds.

python -m reproduction.measures [--root data] [--out results] [neighbors] [cost]      all by default
"""

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from scipy import stats

from reproduction.tables import RESULTS, Results
from roadworthy.core.random import Key
from roadworthy.core.types import Batch, Dataset, Imputer, Maps
from roadworthy.datasets import CIFAR10, Food101, first
from roadworthy.evaluation.no_retrain import NoRetrain
from roadworthy.evaluation.orders import most_relevant_first
from roadworthy.evaluation.retraining import Mapped, Retrain
from roadworthy.evaluation.sweep import imputed
from roadworthy.imputers import DatasetMean, NoisyLinear
from roadworthy.models import resnet18
from roadworthy.models.normalized import Normalized
from roadworthy.training.recipe import RECIPES

OFFSETS = {"direct": ((0, 1), (1, 0)), "diagonal": ((1, 1), (1, -1))}
"""rows down and columns right"""
PAPER_SIZE = {"train": 50_000, "test": 10_000, "epochs": 40}
FRACTION = 0.5


class Size(NamedTuple):
    correlated: int
    """images of each data set"""
    timed: int
    repeats: int
    """of the timing"""


SIZES = {"full": Size(10_000, 640, 10), "tiny": Size(16, 4, 2)}
DRAWS = 1000


def neighbors(root: Path, size: Size) -> pd.DataFrame:
    """Pearson correlation of pixels with their neighbors: `over` all images and channels, and `within` images, after
    subtracting the mean of each image's channels; `low` and `high` are the latter's 95 % interval over images."""
    rows = []
    for name, data in (("cifar10", CIFAR10(root, split="test")), ("food101", Food101(root, split="test"))):
        images = torch.cat(
            [batch.images for batch in first(data, min(size.correlated, len(data))).batches(500)]
        ).double()
        centered = images - images.mean(dim=(2, 3), keepdim=True)
        for kind, offsets in OFFSETS.items():
            over, within = (_sums(pixels, offsets) for pixels in (images, centered))
            weights = np.random.default_rng(0).multinomial(len(images), np.full(len(images), 1 / len(images)), DRAWS)
            low, high = np.percentile(_correlation(weights @ within), [2.5, 97.5])
            values = (float(_correlation(sums.sum(axis=0))) for sums in (over, within))
            rows.append((name, kind, *values, low, high, len(images), images.shape[-1]))
    return pd.DataFrame(rows, columns=["experiment", "neighbors", "over", "within", "low", "high", "images", "side"])


def _sums(images: torch.Tensor, offsets: Sequence[tuple[int, int]]) -> NDArray[np.float64]:
    """Per image: the number of pairs x, y of neighbors and the sums of x, y, x², y² and xy."""
    total = np.zeros((len(images), 6))
    for down, right in offsets:
        x, y = (pixels.flatten(1) for pixels in _shifted(images, down, right))
        parts = (torch.ones_like(x), x, y, x * x, y * y, x * y)
        total += torch.stack([part.sum(dim=1) for part in parts], dim=1).numpy()
    return total


def _correlation(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    count, x, y, xx, yy, xy = np.moveaxis(sums, -1, 0)
    covariance, variances = xy - x * y / count, (xx - x * x / count) * (yy - y * y / count)
    return np.asarray(covariance / np.sqrt(variances))


def _shifted(images: torch.Tensor, down: int, right: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Every pixel that has a neighbor at the offset, and these neighbors."""
    height, width = images.shape[-2:]
    pixels, neighbors = (slice(max(0, -right), width - max(0, right)), slice(max(0, right), width - max(0, -right)))
    return images[..., : height - down, pixels], images[..., down:, neighbors]


def cost(root: Path, size: Size) -> pd.DataFrame:
    """Seconds per image of evaluating and of training, with the same network and imputer, on one thread; and what the
    paper's numbers of images and epochs would cost. `share` is of the cost of retraining with fixed imputation.

    The network is the paper's, a ResNet-18 with its stem; batches of 64. Medians of several runs, in processor time;
    the share has a 95 % interval by Student's t over these runs.
    """
    torch.set_num_threads(1)
    data = first(CIFAR10(root, split="train", train_batches=(1,)), size.timed)
    imputers = {"fixed": DatasetMean.of(data), "linear": NoisyLinear()}
    calls = [partial(call, data, imputer) for imputer in imputers.values() for call in (_evaluate, _train)]
    seconds = np.array([[_seconds(call) for call in calls] for _ in range(size.repeats + 1)])[
        1:
    ]  # the first run compiles
    evaluating, training = seconds[:, ::2] / size.timed, seconds[:, 1::2] / size.timed  # runs × imputers
    road = PAPER_SIZE["test"] * evaluating
    roar = PAPER_SIZE["epochs"] * PAPER_SIZE["train"] * training + road
    share = road / roar[:, :1]
    half = stats.t.isf(0.025, size.repeats - 1) * share.std(axis=0, ddof=1) / np.sqrt(size.repeats)
    columns = {"evaluating": evaluating, "training": training, "road": road, "roar": roar}
    table = pd.DataFrame(
        {"imputer": list(imputers), **{name: np.median(part, axis=0) for name, part in columns.items()}}
    )
    mean = share.mean(axis=0)
    return table.assign(share=mean, share_low=mean - half, share_high=mean + half, images=size.timed)


def _network() -> Normalized:
    return Normalized(resnet18(10))


def _evaluate(data: Dataset, imputer: Imputer) -> None:
    evaluator, key = NoRetrain(_network().eval()), Key(0)
    for batch in data.batches(64):
        ranks = most_relevant_first(_random_maps(batch), batch.ids, key)
        for removed, images in imputed(imputer, batch, ranks, (FRACTION,), key):
            evaluator(images, removed)


def _train(data: Dataset, imputer: Imputer) -> None:
    recipe = replace(
        RECIPES["paper-cifar10"], epochs=1, milestones=(), schedule="constant", batch_size=64, select="last"
    )
    maps = torch.cat([_random_maps(batch) for batch in data.batches(500)])
    Retrain(recipe, Mapped(data, maps), _network).fit(most_relevant_first, imputer, FRACTION, Key(0))


def _random_maps(batch: Batch) -> Maps:
    return Key(1).uniform(batch.ids, (32, 32))


def _seconds(call: Callable[[], object]) -> float:
    """Of processor time: other processes do not count."""
    started = time.process_time()
    call()
    return time.process_time() - started


MEASURES = {"neighbors": neighbors, "cost": cost}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(MEASURES)}; default: all")
    parser.add_argument("--root", type=Path, default=Path("data"), help="holds cifar-10-batches-bin and food-101")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--size", choices=list(SIZES), default="full")
    options = parser.parse_args()
    for name in options.names or MEASURES:
        table = MEASURES[name](options.root, SIZES[options.size])
        Results(options.out).write(name, table)
        print(f"{name}\n{table.to_string(index=False)}\n")


if __name__ == "__main__":
    main()
