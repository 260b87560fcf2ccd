"""How close an imputer comes to the removed pixels, and how long it takes."""

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import torch

from roadworthy.core.masks import MASKS, random_removal
from roadworthy.core.random import Key
from roadworthy.core.types import Batch, Dataset, Images, Imputer, Removed


class Quality(NamedTuple):
    imputer: str
    masks: str
    """"scatter" or "blobs\""""
    fraction: float
    mse: float
    """imputation MSE: of removed pixels against the true ones, mean over images"""
    seconds: float
    """per image"""
    images: int


def imputation_quality(
    imputers: Mapping[str, Imputer],
    data: Dataset,
    fractions: Sequence[float] = (0.1, 0.3, 0.5),
    key: Key = Key(0),  # noqa: B008  a frozen value
    batch: int = 64,
) -> Iterator[Quality]:
    """Every imputer on the same images with the same masks of both kinds, a row for each fraction."""
    one = next(data.batches(1))
    for imputer in imputers.values():
        imputer(one, random_removal(one, "scatter", 0.5, key), key)  # the first call may compile
    for masks in MASKS:
        for fraction in fractions:
            for name, imputer in imputers.items():
                total, seconds = 0.0, 0.0
                for one in data.batches(batch):
                    removed = random_removal(one, masks, fraction, key.fold("quality"))
                    started = time.perf_counter()
                    filled = imputer(one, removed, key)
                    seconds += time.perf_counter() - started
                    total += float(imputation_mse(filled, one.images, removed).sum())
                yield Quality(name, masks, fraction, total / len(data), seconds / len(data), len(data))


def imputation_mse(filled: Images, images: Images, removed: Removed) -> Images:
    """`(n,)`: per image, over its removed pixels and all channels; 0 where nothing is removed."""
    squares = (filled - images).square().mean(dim=1) * removed
    return squares.flatten(1).sum(dim=1) / removed.flatten(1).sum(dim=1).clamp(min=1)


def picture_strip(
    imputers: Mapping[str, Imputer],
    batch: Batch,
    masks: str,
    fraction: float,
    key: Key = Key(0),  # noqa: B008  a frozen value
) -> Images:
    """`(c, h', w')` in [0, 1]: a column per image; rows: the image, without the removed pixels, each imputer."""
    removed = random_removal(batch, masks, fraction, key.fold("quality"))
    blackened = torch.where(removed[:, None], 0.0, batch.images)
    rows = [batch.images, blackened, *(imputer(batch, removed, key) for imputer in imputers.values())]
    return torch.cat([torch.cat(list(row), dim=2) for row in rows], dim=1).clamp(0, 1)
