"""Retraining with linear against fixed imputation (target: at most 1.15 ×; the paper: 1.20 ×).

python bench/retraining.py [--root DATA] [--images 600] [--width 16] [--epochs 2]

CIFAR-10 train images if available, otherwise random ones: the arithmetic is the same.
"""

import argparse
import os
import time

import numpy as np
import torch

from roadworthy.core.errors import DataError
from roadworthy.core.random import Key
from roadworthy.datasets import CIFAR10, Arrays, first
from roadworthy.evaluation.orders import most_relevant_first
from roadworthy.evaluation.retraining import Mapped, Retrain
from roadworthy.imputers import DatasetMean, NoisyLinear
from roadworthy.models import resnet18
from roadworthy.models.normalized import Normalized
from roadworthy.training.recipe import Recipe
from roadworthy.training.trainer import readable


def images(root: str, count: int):
    try:
        return readable(first(CIFAR10(root, "train", train_batches=(1,)), count))
    except DataError:
        return Arrays(Key(0).uniform(range(count), (3, 32, 32)), torch.arange(count) % 10)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", default=os.environ.get("ROADWORTHY_DATA", "data"))
    parser.add_argument("--images", type=int, default=600)
    parser.add_argument("--width", type=int, default=16)
    parser.add_argument("--epochs", type=int, default=2)
    options = parser.parse_args()
    data = images(options.root, options.images)
    maps = Key(1).uniform(data.ids, (32, 32))
    recipe = Recipe(epochs=options.epochs, batch_size=32, lr=0.01, optimizer="sgd")
    imputers = {"fixed": DatasetMean.of(data), "linear": NoisyLinear()}

    def network():
        return Normalized(resnet18(classes=10, stem="cifar", width=options.width), 0.45, 0.25)

    seconds: dict[str, list[float]] = {name: [] for name in imputers}
    for run in range(4):  # the first is a warm-up
        for name, imputer in imputers.items():
            evaluator = Retrain(recipe, Mapped(data, maps), network)
            started = time.perf_counter()
            evaluator.fit(most_relevant_first, imputer, 0.5, Key(run))
            seconds[name].append(time.perf_counter() - started)
    median = {name: float(np.median(times[1:])) for name, times in seconds.items()}
    ratio = median["linear"] / median["fixed"]
    each = {name: value / options.epochs / len(data) * 1e3 for name, value in median.items()}
    print(f"{len(data)} images, {options.epochs} epochs, ResNet-18 of width {options.width}, "
          f"{torch.get_num_threads()} thread(s)")  # fmt: skip
    print(f"fixed {median['fixed']:.2f} s ({each['fixed']:.2f} ms per image), linear {median['linear']:.2f} s")
    print(f"linear / fixed: {ratio:.2f} ({'within' if ratio <= 1.15 else 'ABOVE'} the target of 1.15)")


if __name__ == "__main__":
    main()
