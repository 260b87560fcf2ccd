"""How often the leakage audit errs, in small worlds that leak or do not (targets: 5 % false alarms, 10 % misses).

python bench/leakage.py [--root DATA] [--draws 200] [--masks 120]

Each draw has its own images, labels and masks. A target is missed if the observed share lies above it by a one-sided
binomial test at 1 %; then the exit code is 1. CIFAR-10 images if available, otherwise smoothed noise.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from scipy import stats
from scipy.ndimage import gaussian_filter
from torch import Tensor

from roadworthy.audit.leakage import leak_through
from roadworthy.audit.mask_detection import train_mask_detector
from roadworthy.audit.tables import LeakageSetting, conclusion_table
from roadworthy.core.errors import DataError
from roadworthy.core.masks import blobs, removed_at, scattered
from roadworthy.core.random import Key
from roadworthy.core.types import Batch, Imputer
from roadworthy.datasets import CIFAR10, Arrays
from roadworthy.imputers import Constant, NoisyLinear

FALSE_ALARMS, MISSES = 0.05, 0.10
LEVEL = 0.01
FRACTIONS = (0.1, 0.5, 0.9)


class Draw(NamedTuple):
    labels: Tensor
    masks: Sequence[Tensor]
    """one per fraction"""


class World(NamedTuple):
    name: str
    leaks: bool
    images: Callable[[int, Key], Batch]
    imputer: Imputer
    draw: Callable[[Batch, Key], Draw]


# ── images ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def photographs(root: str) -> Callable[[int, Key], Batch]:
    try:
        pool = next(CIFAR10(root).batches(10_000))
    except DataError:
        noise = gaussian_filter(Key(9).normal(range(2000), (3, 32, 32)).numpy(), 2, axes=(2, 3))
        images = torch.from_numpy(noise)
        images = 0.5 + 0.2 * images / images.std() + 0.02 * Key(8).normal(range(2000), (3, 32, 32))
        pool = Batch(torch.arange(2000), images.clamp(0, 1), torch.arange(2000) % 10)

    def draw(count: int, key: Key) -> Batch:
        return pool[torch.from_numpy(key.fold("images").permutation(0, len(pool))[:count])]

    return draw


def noise(count: int, key: Key) -> Batch:
    images = key.fold("images").uniform(range(count), (1, 16, 16))
    return Batch(torch.arange(count), images, torch.zeros(count, dtype=torch.int64))


def same_noise(batch: Batch, removed: Tensor, key: Key) -> Tensor:
    """Removed pixels of a `noise` image are drawn again: nothing can be detected."""
    fresh = key.fold("fresh").uniform(batch.ids, tuple(batch.images.shape[1:]))
    return torch.where(removed[:, None], fresh, batch.images)


# ── labels and masks ─────────────────────────────────────────────────────────────────────────────────────────────────


def random_labels(batch: Batch, classes: int, key: Key) -> Tensor:
    return (key.fold("labels").uniform(range(len(batch)), (1,))[:, 0] * classes).long()


def one_half(batch: Batch, key: Key) -> Draw:
    """The counter-example: class 0 loses 10 % of its pixels scattered in the left half, class 1 in the right half."""
    size, labels = batch.images.shape[-1], random_labels(batch, 2, key)
    score = key.fold("masks").uniform(range(len(batch)), (size, size))
    right = torch.arange(size) >= size // 2
    score = score + (right[None] == (labels[:, None] == 0))[:, None]  # the other half comes last
    ranks = score.flatten(1).argsort(dim=1).argsort(dim=1).reshape(score.shape)
    return Draw(labels, [removed_at(ranks, 0.1)])


def quadrant(batch: Batch, key: Key) -> Draw:
    """Four classes, each with a blob in its quadrant, 10 %."""
    size, labels = batch.images.shape[-1], random_labels(batch, 4, key)
    field = key.fold("masks").normal(range(len(batch)), (size, size)).numpy()
    smooth = torch.from_numpy(gaussian_filter(field, size / 10, axes=(1, 2)))
    down, right = torch.meshgrid(torch.arange(size) >= size // 2, torch.arange(size) >= size // 2, indexing="ij")
    own = (2 * down.long() + right.long())[None] == labels[:, None, None]
    ranks = (smooth + 10 * ~own).flatten(1).argsort(dim=1).argsort(dim=1).reshape(smooth.shape)
    return Draw(labels, [removed_at(ranks, 0.1)])


def shape(batch: Batch, key: Key) -> Draw:
    """Class 0 loses scattered pixels, class 1 blobs; 10, 50 and 90 %."""
    labels, ids, size = random_labels(batch, 2, key), torch.arange(len(batch)), tuple(batch.images.shape[-2:])
    scatter, smooth = (kind(ids, size, key.fold("masks")) for kind in (scattered, blobs))
    ranks = torch.where(labels[:, None, None] == 0, scatter, smooth)
    return Draw(labels, [removed_at(ranks, fraction) for fraction in FRACTIONS])


def independent(labels: Callable[[Batch, Key], Tensor]) -> Callable[[Batch, Key], Draw]:
    """Half of the masks are scattered, half are blobs, whatever the class; 10, 50 and 90 %."""

    def draw(batch: Batch, key: Key) -> Draw:
        masks = shape(batch, key.fold("other")).masks
        return Draw(labels(batch, key), masks)

    return draw


def worlds(root: str) -> list[World]:
    photos, linear = photographs(root), NoisyLinear()
    two = independent(lambda batch, key: random_labels(batch, 2, key))
    true = independent(lambda batch, key: batch.labels)
    return [
        World("scattered in one half, linear", True, photos, linear, one_half),
        World("blob in one of four quadrants, fixed", True, photos, Constant(0.5), quadrant),
        World("scatter or blobs, linear", True, photos, linear, shape),
        World("random labels, independent masks, linear", False, photos, linear, two),
        World("true labels, independent masks, fixed", False, photos, Constant(0.5), true),
        World("noise, one half, filled with the same noise", False, noise, same_noise, one_half),
    ]


# ── measuring ────────────────────────────────────────────────────────────────────────────────────────────────────────


def found(world: World, network: torch.nn.Sequential, masks: int, key: Key) -> bool:
    batch = world.images(masks, key)
    labels, removed = world.draw(batch, key)
    data = Arrays(batch.images, labels)
    readings = leak_through(network, world.imputer, data, lambda rows: [mask[rows] for mask in removed], labels, key)
    settings = [LeakageSetting("m", "morf", "i", number) for number in range(len(removed))]
    return bool(conclusion_table(dict(zip(settings, readings, strict=True)))["found"].item())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", default=os.environ.get("ROADWORTHY_DATA", "data"))
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--masks", type=int, default=120)
    options = parser.parse_args()
    missed, started = 0, time.perf_counter()
    print(f"{options.draws} draws of {options.masks} masks each\n")
    print("| world | leaks | found | errors | target | |\n|---|---|---|---|---|---|")
    for world in worlds(options.root):
        network = train_mask_detector(world.imputer, world.images(128, Key(1)), Key(0))
        leaks = sum(found(world, network, options.masks, Key(100 + draw)) for draw in range(options.draws))
        errors, target = (options.draws - leaks, MISSES) if world.leaks else (leaks, FALSE_ALARMS)
        ok = stats.binomtest(errors, options.draws, target, alternative="greater").pvalue >= LEVEL
        missed += not ok
        share = f"{errors / options.draws:.1%} | at most {target:.0%} | {'within' if ok else 'ABOVE'}"
        print(f"| {world.name} | {'yes' if world.leaks else 'no'} | {leaks} | {share} |", flush=True)
    print(f"\n{time.perf_counter() - started:.0f} s, {torch.get_num_threads()} thread(s)")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
