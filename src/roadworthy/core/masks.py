"""Removal masks: the first pixels by rank, counted exactly and never thresholded, or random pixels by key."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np
import torch
from scipy.ndimage import gaussian_filter

from roadworthy.core.errors import RangeError
from roadworthy.core.partitions import Partition
from roadworthy.core.random import Key
from roadworthy.core.types import Batch, Ids, Ranks, Removed

FRACTIONS: tuple[float, ...] = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
"""The default grid; it contains the paper's fractions and their complements."""

PAPER_FRACTIONS: tuple[float, ...] = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 0.9)


_ROUNDING = 1e-9
"""Of floats: .29 · 50 is 14.499999999999998. It is above their error (3 · 2⁻⁵³ · pixels, 3e-10 for a million pixels)
and below what a decimal fraction that means less than half a pixel falls short of it (1e-7 for seven decimals)."""


def removed_at(ranks: Ranks, fraction: float, units: Partition | None = None) -> Removed:
    """Remove the first floor(fraction·k + ½) of the k units of each image; without units, of its h·w pixels."""
    if units is None:
        return ranks < count(fraction, ranks.shape[-2] * ranks.shape[-1])
    if len(set(units.counts)) == 1:
        return ranks < count(fraction, units.counts[0])
    return ranks < (fraction * units.numbers.double() + 0.5 + _ROUNDING).floor()


def count(fraction: float, pixels: int) -> int:
    """The number of pixels, or units, that `fraction` removes: floor(fraction·pixels + ½), exact for decimal fractions.

    >>> [count(fraction, 784) for fraction in (0, 0.1, 0.5, 1)], count(0.29, 50)
    ([0, 78, 392, 784], 15)
    """
    return math.floor(fraction * pixels + 0.5 + _ROUNDING)


def checked_fractions(fractions: Sequence[float]) -> tuple[float, ...]:
    """The fractions, sorted and without duplicates; values outside [0, 1] raise a RangeError."""
    try:
        values = [float(fraction) for fraction in np.atleast_1d(np.asarray(fractions, dtype=float)).ravel()]
    except (TypeError, ValueError) as error:
        raise RangeError(f"fractions={fractions!r}: give numbers in [0, 1] (10 % is 0.1)") from error
    if not values:
        raise RangeError("fractions is empty: give fractions of removed pixels, such as rw.FRACTIONS")
    for value in values:
        if not 0 <= value <= 1:
            raise RangeError(f"fraction {value}: the fraction of removed pixels must be in [0, 1] (10 % is 0.1)")
    return tuple(sorted(set(values)))


_BLOB_SIZE = 0.1
"""relative to the shorter side of the image"""


class Masks(Protocol):
    def __call__(self, ids: Ids, shape: tuple[int, int], key: Key, units: Partition | None = None) -> Ranks:
        """Random ranks for images of `(height, width)`, by key and id."""


def scattered(ids: Ids, shape: tuple[int, int], key: Key, units: Partition | None = None) -> Ranks:
    """Independent pixels, or units: a uniformly random permutation."""
    if units is None:
        return _ranks(key.uniform(ids, (shape[0] * shape[1],)), shape)
    return units.joined([_ranks(key.uniform(ids[rows], (number,))) for number, rows in units.groups(len(ids))])


def blobs(ids: Ids, shape: tuple[int, int], key: Key, units: Partition | None = None) -> Ranks:
    """Contiguous regions: the ranks of smoothed noise, pooled to units."""
    smooth = gaussian_filter(key.normal(ids, shape).numpy(), max(1.0, _BLOB_SIZE * min(shape)), axes=(1, 2))
    field = torch.from_numpy(smooth)
    if units is None:
        return _ranks(field.flatten(1), shape)
    pooled = replace(units, reduction="mean").pool(field).to(field.dtype)
    return units.joined([_ranks(pooled[rows, :number]) for number, rows in units.groups(len(ids))])


MASKS: Mapping[str, Masks] = {"scatter": scattered, "blobs": blobs}


def random_removal(batch: Batch, masks: str, fraction: float, key: Key) -> Removed:
    """Remove exactly `fraction` of each image, by the kind of mask named in `MASKS`."""
    height, width = batch.images.shape[-2:]
    return removed_at(MASKS[masks](batch.ids, (height, width), key.fold(masks), batch.units), fraction, batch.units)


def at_random_shares(ranks: Ranks, ids: Ids, largest: float, key: Key, units: Partition | None = None) -> Removed:
    """Remove the first pixels, or units, of each image by rank, a random fraction below `largest`."""
    fractions = key.fold("share").uniform(ids, (1,))[:, 0] * largest
    numbers = (ranks[0].numel(),) if units is None else units.counts
    each = numbers * len(fractions) if len(numbers) == 1 else numbers
    pairs = zip(fractions, each, strict=True)
    counts = torch.tensor([min(count(float(one), number), number - 1) for one, number in pairs])  # one is kept
    return ranks < counts[:, None, None]


def of_either_kind(
    ids: Ids, shape: tuple[int, int], largest: float, key: Key, units: Partition | None = None
) -> Removed:
    """Scattered pixels or blobs, with probability ½ each per image; a random fraction below `largest`."""
    scatter = key.fold("kind").uniform(ids, (1, 1)) < 0.5
    kinds = (scattered(ids, shape, key.fold("scatter"), units), blobs(ids, shape, key.fold("blobs"), units))
    return at_random_shares(torch.where(scatter, *kinds), ids, largest, key, units)


def random_masks(ids: Ids, shape: tuple[int, int], largest: float, kind: str, key: Key) -> Removed:
    """A random fraction below `largest` of each image: scattered pixels or blobs ("either"), or "scatter" alone."""
    if kind == "either":
        return of_either_kind(ids, shape, largest, key)
    return at_random_shares(MASKS[kind](ids, shape, key.fold(kind)), ids, largest, key)


def _ranks(field: torch.Tensor, shape: tuple[int, ...] = (-1,)) -> Ranks:
    return field.argsort(dim=1).argsort(dim=1).reshape(len(field), *shape)
