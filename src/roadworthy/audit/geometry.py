"""Geometry: how much of the removed pixels does the linear imputation restore, whatever the pixels mean?

A scattered pixel is restored from its neighbors, a blob is lost. So blobs are favored in MoRF and scatter in LeRF,
though neither says what a model uses (paper, older supplement). Measured per image, in one pass over the data:

γ = Σ(x − imputed)² ÷ Σ(x − mean)² over removed pixels and channels, with the imputer's noise switched off.

Every image is first centered by the mean image of its class, so differences between classes do not count as geometry.
(The imputer is linear: imputing before centering gives the same.)
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from roadworthy.core.errors import InputError, ShapeError
from roadworthy.core.masks import checked_fractions
from roadworthy.core.random import Key
from roadworthy.core.types import Batch, Dataset, Images, Labels, Maps, Order, Ranks, Removed
from roadworthy.evaluation.orders import rank
from roadworthy.evaluation.sweep import imputed
from roadworthy.evaluation.units import PIXELS, UnitSetting
from roadworthy.imputers import NoisyLinear

Array = NDArray[np.float64]
Means = Mapping[int, Tensor]
"""The mean image of each class `(c, h, w)`."""


@final
@dataclass(frozen=True, eq=False)
class Reconstruction:
    """How well linear imputation restores one removal, per image: sums of squares over removed pixels and channels."""

    method: str
    order: str
    fraction: float
    residual: Array
    """Σ(x − imputed)²"""
    total: Array
    """Σ(x − mean)²"""


@final
@dataclass(frozen=True, eq=False)
class Geometry:
    reconstructions: tuple[Reconstruction, ...]
    blur: Mapping[str, Array]
    """method to `blurriness` per image"""


def class_means(batches: Iterable[Batch]) -> dict[int, Tensor]:
    """The mean image of each class, streamed; unlabeled images form one class."""
    totals: dict[int, Tensor] = {}
    counts: dict[int, int] = {}
    for batch in batches:
        for label in sorted(set(batch.labels.tolist())):
            images = batch.images[batch.labels == label]
            totals[label] = totals.get(label, torch.zeros(())) + images.sum(dim=0, dtype=torch.float64)
            counts[label] = counts.get(label, 0) + len(images)
    if max(counts.values(), default=0) < 2:
        raise InputError("geometry: every class has one image only, so nothing varies within a class; give more images")
    return {label: (total / counts[label]).float() for label, total in totals.items()}


def geometry_of(
    data: Dataset,
    labels: Labels,
    loaders: Mapping[str, Callable[[], Maps]],
    orders: Mapping[str, Order],
    fractions: Sequence[float],
    key: Key,
    imputer: NoisyLinear = NoisyLinear(),  # noqa: B008  a frozen value
    size: int = 64,
    advance: Callable[[int], object] = lambda images: None,
    units: UnitSetting = PIXELS,
) -> Geometry:
    """The geometry of every method on `data`; `labels` replace the data's own.

    The maps of one method at a time are loaded. `advance` gets the size of every batch that is done, once per method.
    """

    def batches() -> Iterator[tuple[slice, Batch]]:
        start = 0
        for batch in data.batches(size):
            rows = slice(start, start + len(batch))
            yield rows, replace(units(batch), labels=labels[rows])
            start = rows.stop

    def batches_with_maps() -> Iterator[tuple[Batch, dict[str, Maps]]]:
        for method, load in loaders.items():
            maps = load()
            if not len(maps) == len(labels) == len(data):
                raise ShapeError(
                    f"{method}: {len(maps)} maps and {len(labels)} labels for {len(data)} images: give one per image"
                )
            for rows, batch in batches():
                yield batch, {method: maps[rows]}
                advance(len(batch))

    means = class_means(batch for _, batch in batches())
    return measure_geometry(batches_with_maps(), means, orders, fractions, key, imputer)


def measure_geometry(
    batches: Iterable[tuple[Batch, Mapping[str, Maps]]],
    means: Means,
    orders: Mapping[str, Order],
    fractions: Sequence[float],
    key: Key,
    imputer: NoisyLinear = NoisyLinear(),  # noqa: B008  a frozen value
) -> Geometry:
    """The geometry of a stream of batches, each with the maps of some methods.

    `means` are the `class_means` of the same images. `key` breaks ties as in an evaluation of the same maps. Fraction 0
    removes nothing and is skipped.
    """
    noiseless = replace(imputer, noise=0.0)
    shares = [fraction for fraction in checked_fractions(fractions) if fraction > 0]
    sums: dict[tuple[str, str, float], list[Array]] = {}
    blur: dict[str, list[Array]] = {}
    for batch, by_method in batches:
        centered = replace(batch, images=batch.images - torch.stack([means[label] for label in batch.labels.tolist()]))
        for method, maps in by_method.items():
            ranks_by_order = rank(orders, maps, batch.ids, key, batch.units)
            blur.setdefault(method, []).append(blurriness(next(iter(ranks_by_order.values()))))
            for order, ranks in ranks_by_order.items():
                for fraction, (removed, restored) in zip(
                    shares, imputed(noiseless, centered, ranks, shares, key), strict=True
                ):
                    squares = _sums_of_squares(centered.images, restored, removed)
                    sums.setdefault((method, order, fraction), []).append(squares)
    if not sums:
        raise InputError("geometry: there is nothing to measure; give images, methods and a fraction above 0")
    return Geometry(
        tuple(Reconstruction(*point, *np.concatenate(squares, axis=1)) for point, squares in sums.items()),
        {method: np.concatenate(values) for method, values in blur.items()},
    )


def _sums_of_squares(centered: Images, imputed: Images, removed: Removed) -> Array:
    """`(2, n)`: residual and total sum of squares per image."""
    mask = removed[:, None]
    return np.stack(
        [(part.double().square() * mask).sum(dim=(1, 2, 3)).numpy() for part in (centered - imputed, centered)]
    )


def blurriness(ranks: Ranks) -> Array:
    """Per image, the correlation of the ranks of adjacent pixels (Moran's I): 0 for scatter, near 1 for smooth maps.

    Computed on ranks, so neither rescaling the maps nor reversing the order changes it. A checkerboard of relevant and
    irrelevant pixels is below 0; a constant map, whose ties are broken at random, is scatter.

    >>> ramp = torch.arange(16).reshape(1, 4, 4)
    >>> round(float(blurriness(ramp)[0]), 3)
    0.667
    """
    deviations = ranks.double() - ranks.double().mean(dim=(1, 2), keepdim=True)
    down = (deviations[:, 1:] * deviations[:, :-1]).flatten(1)
    across = (deviations[:, :, 1:] * deviations[:, :, :-1]).flatten(1)
    return (torch.cat([down, across], dim=1).mean(dim=1) / deviations.square().mean(dim=(1, 2))).numpy()
