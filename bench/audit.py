"""The leakage audit, given the maps (target: 8 methods on 2,000 images of 32×32 in 10 minutes on 2 cores).

python bench/audit.py [--root DATA] [--images 2000] [--methods 8]

CIFAR-10 images if available, otherwise random ones; maps are smooth noise: the arithmetic is the same.
"""

import argparse
import os
import time

import torch

import roadworthy as rw
from roadworthy.core.errors import DataError
from roadworthy.core.masks import blobs
from roadworthy.core.random import Key
from roadworthy.datasets import CIFAR10, Arrays, first

SECONDS = 600


def images(root: str, count: int):
    try:
        return first(CIFAR10(root), count)
    except DataError:
        return Arrays(Key(0).uniform(range(count), (3, 32, 32)), torch.arange(count) % 10)


def mean_colors(images):
    """The cheapest of classifiers: the audit is timed, not the comparison before it."""
    return images.mean(dim=(2, 3)).repeat(1, 4)[:, :10]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", default=os.environ.get("ROADWORTHY_DATA", "data"))
    parser.add_argument("--images", type=int, default=2000)
    parser.add_argument("--methods", type=int, default=8)
    options = parser.parse_args()
    data = images(options.root, options.images)
    maps = {f"method {seed}": blobs(data.ids, (32, 32), Key(seed)).float() for seed in range(options.methods)}
    comparison = rw.compare(
        mean_colors, data, maps, imputers=("fixed", "linear"), fractions=(0.1, 0.5, 0.9), controls=(), progress=False
    )
    started, used = time.perf_counter(), time.process_time()
    comparison.audit(progress=False)
    seconds, used = time.perf_counter() - started, time.process_time() - used
    print(f"{len(data)} images, {options.methods} methods, 2 orders, 2 imputers, {torch.get_num_threads()} thread(s)")
    print(
        f"{seconds:.0f} s, {used:.0f} CPU s ({'within' if seconds <= SECONDS else 'ABOVE'} the target of {SECONDS} s)"
    )


if __name__ == "__main__":
    main()
