"""What the paper reports beside its experiments: neighbors' correlation, the toy world, cost per image.

python -m reproduction.measures [--root data] [neighbors] [toy] [cost]      all three if none is named
"""

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from reproduction.collect import write
from roadworthy.audit.toy import run_toy
from roadworthy.core.random import Key
from roadworthy.core.types import Batch, Dataset, Removal
from roadworthy.datasets import CIFAR10, Food101, first
from roadworthy.evaluation.evaluators import Mapped, Retrain
from roadworthy.evaluation.orders import most_relevant_first
from roadworthy.evaluation.sweep import NoRetrain, evaluator_batch
from roadworthy.imputers import DatasetMean, NoisyLinear
from roadworthy.models import resnet18
from roadworthy.models.normalized import Normalized
from roadworthy.training.recipe import RECIPES

STEPS = {"direct": ((0, 1), (1, 0)), "diagonal": ((1, 1), (1, -1))}
PAPER_SPLIT = {"train": 50_000, "test": 10_000, "epochs": 40}
IMAGES, REPEATS = 640, 3


def neighbors(root: Path) -> pd.DataFrame:
    """Pearson correlation of pixels with their neighbors: over all images and channels together, and within images,
    each channel's mean taken off first."""
    rows = []
    for name, data in (("cifar10", CIFAR10(root, split="test")), ("food101", Food101(root, split="test"))):
        images = torch.cat([batch.images for batch in first(data, 10_000).batches(500)]).double()
        centerd = images - images.mean(dim=(2, 3), keepdim=True)
        for kind, steps in STEPS.items():
            over, within = (_correlation(pixels, steps) for pixels in (images, centerd))
            rows.append((name, kind, over, within, len(images), images.shape[-1]))
    return pd.DataFrame(rows, columns=["experiment", "neighbors", "over", "within", "images", "side"])


def _correlation(images: torch.Tensor, steps: Sequence[tuple[int, int]]) -> float:
    pairs = [_shifted(images, down, right) for down, right in steps]
    one, other = (torch.cat([pair[side].flatten() for pair in pairs]) for side in (0, 1))
    return float(torch.corrcoef(torch.stack([one, other]))[0, 1])


def _shifted(images: torch.Tensor, down: int, right: int) -> tuple[torch.Tensor, torch.Tensor]:
    height, width = images.shape[-2:]
    here, there = (slice(max(0, -right), width - max(0, right)), slice(max(0, right), width - max(0, -right)))
    return images[..., : height - down, here], images[..., down:, there]


def toy(root: Path) -> pd.DataFrame:
    """The Gaussian world: accuracy and debiased accuracy of its five orderings, and the exact γ."""
    return run_toy().debiased().drop(columns=["imputer", "clipped", "applies"])


def cost(root: Path) -> pd.DataFrame:
    """Seconds per image of evaluating and of learning, same network and fill, one thread; and what the paper's split asks.

    The network is the paper's, a ResNet-18 with its stem; batch 64. Medians of several runs.
    """
    torch.set_num_threads(1)
    data = first(CIFAR10(root, split="train", train_batches=(1,)), IMAGES)
    rows = []
    for name, imputer in (("fixed", DatasetMean.of(data)), ("linear", NoisyLinear())):
        removal = Removal(most_relevant_first, imputer)
        evaluating = _median(lambda: _evaluator(data, removal))  # noqa: B023
        learning = _median(lambda: _learn(data, removal))  # noqa: B023
        road = PAPER_SPLIT["test"] * evaluating
        roar = PAPER_SPLIT["epochs"] * PAPER_SPLIT["train"] * learning + road
        rows.append((name, evaluating, learning, road, roar, IMAGES))
    return pd.DataFrame(rows, columns=["imputer", "evaluating", "learning", "road", "roar", "images"])


def _network() -> Normalized:
    return Normalized(resnet18(10))


def _evaluator(data: Dataset, removal: Removal) -> None:
    evaluator, key = NoRetrain(_network().eval()), Key(0)
    for batch in data.batches(64):
        ranks = removal.order(_scores(batch), batch.ids, key)
        for _ in evaluator_batch(evaluator, removal, ranks, batch, batch.labels, (0.5,), key, torch.device("cpu")):
            pass


def _learn(data: Dataset, removal: Removal) -> None:
    recipe = replace(
        RECIPES["paper-cifar10"], epochs=1, milestones=(), schedule="constant", batch_size=64, select="last"
    )
    scores = torch.cat([_scores(batch) for batch in data.batches(500)])
    Retrain(recipe, Mapped(data, scores), _network).trained(removal, 0.5, Key(0))


def _scores(batch: Batch) -> torch.Tensor:
    return Key(1).uniform(batch.ids, (32, 32))


def _median(call: Callable[[], object]) -> float:
    """Seconds per image."""
    taken = []
    for _ in range(REPEATS + 1):
        started = time.perf_counter()
        call()
        taken.append(time.perf_counter() - started)
    return float(np.median(taken[1:])) / IMAGES  # the first time compiles


MEASURES = {"neighbors": neighbors, "toy": toy, "cost": cost}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(MEASURES)}; all if none is given")
    parser.add_argument("--root", type=Path, default=Path("data"))
    options = parser.parse_args()
    for name in options.names or MEASURES:
        table = MEASURES[name](options.root)
        write(name, table)
        print(f"{name}\n{table.to_string(index=False)}\n")


if __name__ == "__main__":
    main()
