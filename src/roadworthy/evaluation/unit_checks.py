"""What labels of units must be: integers from 0 without gaps, one for each pixel."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from roadworthy.core.errors import InputError, RangeError, ShapeError
from roadworthy.core.masks import count
from roadworthy.core.partitions import Partition
from roadworthy.core.types import Batch


def check_labels(name: str, given: Any, batch: Batch | None = None) -> Tensor:
    """int64 labels on the CPU, 0 to k − 1 in each image; what cannot be used raises an error that names the units."""
    if not isinstance(given, Tensor | np.ndarray):
        raise ShapeError(f"{name} returned a {type(given).__name__}: return integer labels (n, h, w)")
    labels = torch.as_tensor(given).detach().cpu()
    if batch is not None:
        size = tuple(batch.images.shape[-2:])
        if labels.ndim != 3 or tuple(labels.shape[1:]) != size or len(labels) not in (1, len(batch)):
            expected = f"({len(batch)}, {size[0]}, {size[1]})"
            raise ShapeError(
                f"{name}: labels {tuple(labels.shape)} do not fit images {tuple(batch.images.shape)}: give {expected}, "
                "or (1, h, w) for all images"
            )
    if labels.dtype == torch.bool or labels.is_floating_point() or labels.is_complex():
        kind = str(labels.dtype).removeprefix("torch.")
        raise InputError(f"{name}: labels are {kind}: give integers from 0, one number for each unit")
    flat = labels.long().flatten(1)
    if not flat.numel():
        raise ShapeError(f"{name}: labels {tuple(labels.shape)} are empty: give one label per pixel")
    if (least := int(flat.min())) < 0:
        raise RangeError(f"{name}: label {least}: labels are 0, 1, 2, … for each image")
    _check_gaps(name, flat)
    return labels.long()


def _check_gaps(name: str, flat: Tensor) -> None:
    ordered = flat.sort(dim=1).values
    found, most = 1 + (ordered[:, 1:] != ordered[:, :-1]).sum(dim=1), ordered[:, -1] + 1
    if (bad := (found != most) | (ordered[:, 0] != 0)).any():
        row = int(bad.nonzero()[0])
        missing = next(label for label, own in enumerate([*sorted(set(ordered[row].tolist())), -1]) if label != own)
        raise InputError(
            f"{name}: labels up to {int(most[row]) - 1}, but {missing} is missing: number the units without gaps, "
            "numpy.unique(labels, return_inverse=True)[1].reshape(labels.shape)"
        )
    if (found < 2).any():
        raise InputError(f"{name}: all pixels are one unit, so there is nothing to rank: give at least two")


def check_fractions(units: Partition | None, name: str, fractions: Iterable[float]) -> None:
    """With few units, a fraction below 1 may remove all of them in an image, or one above 0 none in any image."""
    if units is None:
        return
    fewest, most = min(units.counts), max(units.counts)
    for fraction in fractions:
        if fraction > 0 and count(fraction, most) == 0:
            raise RangeError(
                f"fraction {fraction:g} of {most} units ({name}) removes none of them, which repeats the whole images: "
                "give smaller units, or larger fractions"
            )
        if fraction < 1 and count(fraction, fewest) == fewest:
            raise RangeError(
                f"fraction {fraction:g} of {fewest} units ({name}) removes all of them, which leaves nothing to impute "
                "from: give smaller units, or smaller fractions"
            )
