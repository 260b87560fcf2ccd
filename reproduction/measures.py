"""What the paper reports beside its experiments: correlation of neighboring pixels, the toy world, cost per image.

python -m reproduction.measures [--root data] [--out results] [neighbors] [toy] [cost]      all three by default
"""

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from reproduction.collect import RESULTS, write
from roadworthy.audit.toy import run_toy
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
IMAGES, REPEATS, FRACTION = 640, 3, 0.5


def neighbors(root: Path) -> pd.DataFrame:
    """Pearson correlation of pixels with their neighbors: `over` all images and channels, and `within` images, after
    subtracting the mean of each image's channels."""
    rows = []
    for name, data in (("cifar10", CIFAR10(root, split="test")), ("food101", Food101(root, split="test"))):
        images = torch.cat([batch.images for batch in first(data, 10_000).batches(500)]).double()
        centered = images - images.mean(dim=(2, 3), keepdim=True)
        for kind, offsets in OFFSETS.items():
            over, within = (_correlation(pixels, offsets) for pixels in (images, centered))
            rows.append((name, kind, over, within, len(images), images.shape[-1]))
    return pd.DataFrame(rows, columns=["experiment", "neighbors", "over", "within", "images", "side"])


def _correlation(images: torch.Tensor, offsets: Sequence[tuple[int, int]]) -> float:
    pairs = [_shifted(images, down, right) for down, right in offsets]
    pixels, neighbors = (torch.cat([pair[side].flatten() for pair in pairs]) for side in (0, 1))
    return float(torch.corrcoef(torch.stack([pixels, neighbors]))[0, 1])


def _shifted(images: torch.Tensor, down: int, right: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Every pixel that has a neighbor at the offset, and these neighbors."""
    height, width = images.shape[-2:]
    pixels, neighbors = (slice(max(0, -right), width - max(0, right)), slice(max(0, right), width - max(0, -right)))
    return images[..., : height - down, pixels], images[..., down:, neighbors]


def toy(root: Path) -> pd.DataFrame:
    """Accuracy, debiased accuracy and exact γ of the five orderings of the toy world."""
    return run_toy().debiased().drop(columns=["imputer", "clipped", "applies"])


def cost(root: Path) -> pd.DataFrame:
    """Seconds per image of evaluating and of training, with the same network and imputer, on one thread; and what the
    paper's numbers of images and epochs would cost.

    The network is the paper's, a ResNet-18 with its stem; batches of 64. Medians of several runs.
    """
    torch.set_num_threads(1)
    data = first(CIFAR10(root, split="train", train_batches=(1,)), IMAGES)
    rows = []
    for name, imputer in (("fixed", DatasetMean.of(data)), ("linear", NoisyLinear())):
        evaluating, training = (_median(partial(call, data, imputer)) for call in (_evaluate, _train))
        road = PAPER_SIZE["test"] * evaluating
        roar = PAPER_SIZE["epochs"] * PAPER_SIZE["train"] * training + road
        rows.append((name, evaluating, training, road, roar, IMAGES))
    return pd.DataFrame(rows, columns=["imputer", "evaluating", "training", "road", "roar", "images"])


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


def _median(call: Callable[[], object]) -> float:
    """Seconds per image."""
    seconds = []
    for _ in range(REPEATS + 1):
        started = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - started)
    return float(np.median(seconds[1:])) / IMAGES  # the first call compiles


MEASURES = {"neighbors": neighbors, "toy": toy, "cost": cost}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(MEASURES)}; default: all")
    parser.add_argument("--root", type=Path, default=Path("data"), help="holds cifar-10-batches-bin and food-101")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    for name in options.names or MEASURES:
        table = MEASURES[name](options.root)
        write(name, table, options.out)
        print(f"{name}\n{table.to_string(index=False)}\n")


if __name__ == "__main__":
    main()
