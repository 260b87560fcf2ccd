"""Geometry: how much of what a method removes does the linear fill bring back, whatever the pixels mean?

A scattered pixel is restored from its neighbors, a blob is lost: so blobs are favored in MoRF and scatter in LeRF,
though neither says what a model uses (PAPER 7). Measured here, image by image, in one pass over the data:

γ = Σ(x − fill)² ÷ Σ(x − mean)² over removed pixels and channels, with the noise of the fill off.

Every image is centered by the mean image of its class, before it is filled: what tells the classes apart is not counted
as geometry. (The fill is linear, so that filling before centring gives the same.)
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from roadworthy.core.errors import InputError, ShapeError
from roadworthy.core.masks import checked_fractions, removed_at
from roadworthy.core.random import Key
from roadworthy.core.types import Batch, Dataset, Images, Labels, Maps, Order, Ranks, Removed
from roadworthy.evaluation.orders import rank
from roadworthy.evaluation.sweep import fill
from roadworthy.imputers import NoisyLinear

Array = NDArray[np.float64]
Means = Mapping[int, Tensor]
"""The mean image of each class `(c, h, w)`."""


@final
@dataclass(frozen=True, eq=False)
class Refill:
    """What one removal loses, per image: sums of squares over its removed pixels and channels."""

    method: str
    order: str
    fraction: float
    missed: Array
    """(x − fill)²"""
    spread: Array
    """(x − mean)²"""


@final
@dataclass(frozen=True, eq=False)
class Geometry:
    refills: tuple[Refill, ...]
    blur: Mapping[str, Array]
    """method to `blurriness` per image"""


def class_means(batches: Iterable[Batch]) -> dict[int, Tensor]:
    """The mean image of each class, streamed; unlabeled images are a class of their own."""
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
) -> Geometry:
    """Of whole data with known `labels`: the maps of one method at a time are called for and held in memory.

    `advance` is told of every batch that is done, once per method.
    """

    def batches() -> Iterator[tuple[slice, Batch]]:
        start = 0
        for batch in data.batches(size):
            rows = slice(start, start + len(batch))
            yield rows, replace(batch, labels=labels[rows])
            start = rows.stop

    def scored() -> Iterator[tuple[Batch, dict[str, Maps]]]:
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
    return measure_geometry(scored(), means, orders, fractions, key, imputer)


def measure_geometry(
    scored: Iterable[tuple[Batch, Mapping[str, Maps]]],
    means: Means,
    orders: Mapping[str, Order],
    fractions: Sequence[float],
    key: Key,
    imputer: NoisyLinear = NoisyLinear(),  # noqa: B008  a frozen value
) -> Geometry:
    """Stream batches with the maps of every method; ties are broken by `key`, as when the same maps are evaluated.

    `means` are the `class_means` of the same images. Fraction 0 removes nothing and is left out.
    """
    quiet = replace(imputer, noise=0.0)
    shares = [fraction for fraction in checked_fractions(fractions) if fraction > 0]
    lost: dict[tuple[str, str, float], list[Array]] = {}
    blur: dict[str, list[Array]] = {}
    for batch, by_method in scored:
        centered = replace(batch, images=batch.images - torch.stack([means[label] for label in batch.labels.tolist()]))
        for method, maps in by_method.items():
            ranked = rank(orders, maps, batch.ids, key)
            blur.setdefault(method, []).append(blurriness(next(iter(ranked.values()))))
            for name, ranks in ranked.items():
                for fraction, filled in zip(shares, fill(quiet, centered, ranks, shares, key), strict=True):
                    pair = _squares(centered.images, filled, removed_at(ranks, fraction))
                    lost.setdefault((method, name, fraction), []).append(pair)
    if not lost:
        raise InputError("geometry: there is nothing to measure; give images, methods and a fraction above 0")
    return Geometry(
        tuple(Refill(*point, *np.concatenate(pairs, axis=1)) for point, pairs in lost.items()),
        {method: np.concatenate(values) for method, values in blur.items()},
    )


def _squares(centered: Images, filled: Images, removed: Removed) -> Array:
    """`(2, n)`: what the fill misses and what there was, per image."""
    gone = removed[:, None]
    return np.stack(
        [(part.double().square() * gone).sum(dim=(1, 2, 3)).numpy() for part in (centered - filled, centered)]
    )


def blurriness(ranks: Ranks) -> Array:
    """Per image, the correlation of the ranks of direct neighbors (Moran's I): 0 for scatter, near 1 for a smooth map.

    Ranks, so that no rescaling of the maps changes it; most or least relevant first are alike. A checkerboard of
    relevant and irrelevant pixels goes below 0, a constant map, whose ties are broken at random, is scatter.

    >>> ramp = torch.arange(16).reshape(1, 4, 4)
    >>> round(float(blurriness(ramp)[0]), 3)
    0.667
    """
    deviations = ranks.double() - ranks.double().mean(dim=(1, 2), keepdim=True)
    down = (deviations[:, 1:] * deviations[:, :-1]).flatten(1)
    across = (deviations[:, :, 1:] * deviations[:, :, :-1]).flatten(1)
    return (torch.cat([down, across], dim=1).mean(dim=1) / deviations.square().mean(dim=(1, 2))).numpy()
