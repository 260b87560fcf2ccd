"""What the leakage audit costs, given the maps (bar: 8 methods on 2,000 images of 32×32 in 10 minutes on 2 cores).

python bench/audit.py [--root DATA] [--images 2000] [--methods 8]

CIFAR-10 images where there are some, random ones otherwise; maps are smooth noise: the arithmetic is the same.
"""

import argparse
import os
import time
from functools import partial

import torch

from roadworthy.core.errors import DataError
from roadworthy.core.masks import blobs
from roadworthy.core.random import Key
from roadworthy.datasets import CIFAR10, Arrays, first
from roadworthy.evaluation.orders import least_relevant_first, most_relevant_first
from roadworthy.experiments.auditing import Settings
from roadworthy.experiments.inspection import Material, Scratch, inspect
from roadworthy.imputers import DatasetMean, NoisyLinear


def images(root: str, count: int):
    try:
        return first(CIFAR10(root), count)
    except DataError:
        return Arrays(Key(0).uniform(range(count), (3, 32, 32)), torch.arange(count) % 10)


def maps(ids, key):
    return blobs(ids, (32, 32), key).float()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", default=os.environ.get("ROADWORTHY_DATA", "data"))
    parser.add_argument("--images", type=int, default=2000)
    parser.add_argument("--methods", type=int, default=8)
    options = parser.parse_args()
    data = images(options.root, options.images)
    labels = torch.cat([batch.labels for batch in data.batches(500)])
    material = Material(
        data,
        labels,
        {f"method {number}": partial(maps, data.ids, Key(number)) for number in range(options.methods)},
        {"morf": most_relevant_first, "lerf": least_relevant_first},
        {"fixed": DatasetMean.of(data), "linear": NoisyLinear()},
        0,
        Scratch(),
    )
    started, used = time.perf_counter(), time.process_time()
    inspect(material, Settings(), progress=False)
    seconds, used = time.perf_counter() - started, time.process_time() - used
    print(f"{len(data)} images, {options.methods} methods, 2 orders, 2 imputers, {torch.get_num_threads()} thread(s)")
    print(f"{seconds:.0f} s, {used:.0f} s of computing ({'within' if seconds <= 600 else 'ABOVE'} the bar of 600)")


if __name__ == "__main__":
    main()
