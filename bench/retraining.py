"""Retraining: linear against fixed imputation (target: at most 1.15 ×; the paper: 1.20 ×), channels_last
or not, bfloat16 or not.

python bench/retraining.py [--root DATA] [--images 1280] [--width 32] [--epochs 2] [--batch-size 128] [--stem imagenet]

Processor time of one thread, the least of four runs: other processes hardly count. CIFAR-10 train images if available,
otherwise random ones: the arithmetic is the same.
"""

import argparse
import os
import time
from itertools import product

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

FORMATS = {
    "usual format": {},
    "channels_last": {"channels_last": True},
    "bfloat16": {"channels_last": True, "autocast": "bfloat16"},
}
RUNS = 4


def images(root: str, count: int):
    try:
        return readable(first(CIFAR10(root, "train", train_batches=(1,)), count))
    except DataError:
        return Arrays(Key(0).uniform(range(count), (3, 32, 32)), torch.arange(count) % 10)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", default=os.environ.get("ROADWORTHY_DATA", "data"))
    parser.add_argument("--images", type=int, default=1280)
    parser.add_argument("--width", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--stem", default="imagenet", choices=["imagenet", "cifar"])
    options = parser.parse_args()
    torch.set_num_threads(1)
    data = images(options.root, options.images)
    maps = Key(1).uniform(data.ids, (32, 32))
    imputers = {"fixed": DatasetMean.of(data), "linear": NoisyLinear()}

    def network():
        return Normalized(resnet18(classes=10, stem=options.stem, width=options.width), 0.5, 0.5)

    seconds: dict[tuple[str, str], list[float]] = {pair: [] for pair in product(imputers, FORMATS)}
    for run in range(RUNS + 1):  # the first is a warm-up
        for imputer, memory_format in seconds:
            recipe = Recipe(
                epochs=options.epochs,
                batch_size=options.batch_size,
                lr=1e-3,
                select="last",
                **FORMATS[memory_format],
            )
            evaluator = Retrain(recipe, Mapped(data, maps), network)
            started = time.process_time()
            evaluator.fit(most_relevant_first, imputers[imputer], 0.5, Key(run))
            seconds[imputer, memory_format].append(time.process_time() - started)
    each = {pair: min(times[1:]) / options.epochs / len(data) * 1e3 for pair, times in seconds.items()}
    print(f"{len(data)} images, {options.epochs} epochs, ResNet-18 of width {options.width}, stem {options.stem}; "
          "ms of one thread per image and epoch")  # fmt: skip
    for (imputer, memory_format), value in each.items():
        print(f"{imputer:>7}, {memory_format:<13} {value:.3f}")
    for memory_format in FORMATS:
        ratio = each["linear", memory_format] / each["fixed", memory_format]
        print(f"{memory_format}: linear / fixed {ratio:.2f} ({'within' if ratio <= 1.15 else 'ABOVE'} 1.15)")
    for imputer, memory_format in product(imputers, list(FORMATS)[1:]):
        ratio = each[imputer, "usual format"] / each[imputer, memory_format]
        print(f"{imputer}: {memory_format} is {ratio:.2f} × faster")


if __name__ == "__main__":
    main()
