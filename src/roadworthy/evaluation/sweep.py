"""Remove, impute, predict: the one loop that measures the points of curves.

images ─attribution► maps ─order► ranks ─fraction► removed ─imputer► imputed images ─evaluator► Predictions
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from roadworthy.attributions.maps import ChannelReduction, as_maps
from roadworthy.core.device import CPU, ahead, moved, stays_on_device, sweep_device
from roadworthy.core.errors import ShapeError
from roadworthy.core.masks import removed_at
from roadworthy.core.partitions import Partition
from roadworthy.core.random import Key
from roadworthy.core.results import Predictions
from roadworthy.core.types import (
    Attribution,
    Batch,
    Derived,
    Evaluator,
    Images,
    Imputer,
    Labels,
    Maps,
    Model,
    Order,
    Ranks,
    Removed,
)
from roadworthy.evaluation.guard import Guard
from roadworthy.evaluation.orders import draw_ties, rank
from roadworthy.models.prediction import returned_nan

IMPUTED_AT_ONCE = 32 << 20
"""Bytes of images that are imputed in one call."""


def explain(
    methods: Mapping[str, Attribution],
    model: Model,
    batch: Batch,
    key: Key,
    channel_reduction: ChannelReduction = "sum",
) -> dict[str, Maps]:
    """The checked maps of every method for the classes `batch.labels`. Sources that methods share are computed once.

    A method gets a batch of its own and its maps are copied, so that no method affects another.
    """
    guard = Guard(model, batch)
    cache: dict[Any, Any] = {}

    def computed(part: Any) -> Any:
        name = part if isinstance(part, Hashable) else id(part)
        if name not in cache:
            if isinstance(part, Derived):
                source = computed(part.source)
                cache[name] = guard.call(lambda own: part.finish(source, own))
            else:
                cache[name] = guard.call(lambda own: part(model, own, key))
        return cache[name]

    maps = {}
    for name, method in methods.items():
        try:
            with guard.watching(name):
                maps[name] = as_maps(
                    name, computed(method), batch.ids, batch.images, channel_reduction, batch.units
                ).clone()
        except Exception as error:
            error.add_note(f"while computing the maps of {name!r}, called as method(model, batch, key)")
            raise
    return maps


def source_of(method: Attribution) -> Hashable:
    """What a derived method is computed from in the end; methods with equal sources are cheaper together."""
    source: Any = method
    while (inner := getattr(source, "source", None)) is not None:
        source = inner
    try:
        hash(source)
    except TypeError:
        return id(source)
    return source  # type: ignore[no-any-return]


def imputed(
    imputer: Imputer, batch: Batch, ranks: Ranks, fractions: Sequence[float], key: Key
) -> Iterator[tuple[Removed, Images]]:
    """The mask and the imputed images at each fraction. Several fractions go together: imputers like many images."""
    together = max(1, IMPUTED_AT_ONCE // max(1, batch.images.nbytes))
    for start in range(0, len(fractions), together):
        chunk = fractions[start : start + together]
        masks = [removed_at(ranks, fraction, batch.units) for fraction in chunk]
        images = filled(imputer, batch.repeated(len(chunk)), torch.cat(masks), key)
        yield from zip(masks, torch.split(images, len(batch)), strict=True)


def filled(imputer: Imputer, batch: Batch, removed: Removed, key: Key) -> Images:
    """On the device of the batch, also by an imputer that knows the CPU only."""
    device, shape = batch.images.device, tuple(batch.images.shape)
    if device == CPU or stays_on_device(imputer):
        return _checked(imputer, imputer(batch, removed, key), shape)
    return _checked(imputer, imputer(batch.to(CPU), removed.cpu(), key), shape).to(device)


def _checked(imputer: Imputer, images: Any, shape: tuple[int, ...]) -> Images:
    if not isinstance(images, Tensor) or tuple(images.shape) != shape:
        returned = tuple(images.shape) if isinstance(images, Tensor) else f"a {type(images).__name__}"
        name = getattr(imputer, "__name__", type(imputer).__name__)
        raise ShapeError(f"imputer {name} returned {returned} for images {shape}: return a tensor of that shape")
    return images


class Curve(NamedTuple):
    """What the points of one curve share, apart from the maps."""

    order: str
    imputer: str
    evaluator: str
    seed: int


class Piece(NamedTuple):
    """The images that are evaluated at once, where they are evaluated."""

    batch: Batch
    maps: Maps
    targets: Labels
    ids: NDArray[np.int64]
    labels: NDArray[np.int64]


def sweep(
    curves: Mapping[Curve, Sequence[float]],
    orders: Mapping[str, Order],
    imputers: Mapping[str, Imputer],
    evaluators: Mapping[Curve, Evaluator],
    maps: Maps,
    batch: Batch,
    targets: Labels,
    batch_size: int,
    device: torch.device = CPU,
) -> Iterator[tuple[Curve, float, Predictions]]:
    """Predictions of one method at the fractions of each curve, on images with known labels.

    Images are ranked once per seed: an order and its reverse share the sort, all imputers and fractions the ranks.
    On a `device` everything is ranked, imputed and predicted there; predictions come back once per piece of
    `batch_size` images, while the images and random numbers of the next piece are drawn and moved.
    """
    device = sweep_device(device)
    seeds = {
        seed: list(group)
        for seed, group in groupby(sorted(curves, key=lambda curve: curve.seed), key=lambda curve: curve.seed)
    }
    parts: dict[tuple[Curve, float], list[Predictions]] = {
        (curve, fraction): [] for curve, fractions in curves.items() for fraction in fractions
    }

    def placed(rows: slice) -> Piece:
        piece = _placed(batch[rows], maps[rows], targets[rows], device)
        for seed, group in seeds.items():
            _draw(group, orders, imputers, piece, Key(seed))
        return piece

    for piece in ahead(placed, [rows for rows, _ in batch.split(batch_size)], device):
        results = _measured(curves, seeds, orders, imputers, evaluators, piece)
        for point, predicted in _collected(piece, results):
            parts[point].append(predicted)
    for (curve, fraction), predictions in parts.items():
        yield curve, fraction, Predictions.join(predictions)


def _placed(batch: Batch, maps: Maps, targets: Labels, device: torch.device) -> Piece:
    images, maps, placed_targets = (moved(tensor, device) for tensor in (batch.images, maps, targets))
    units = None if batch.units is None else batch.units.to(device)
    return Piece(
        replace(batch, images=images, units=units), maps, placed_targets, _numpy(batch.ids), _numpy(batch.labels)
    )


def _draw(
    group: Sequence[Curve], orders: Mapping[str, Order], imputers: Mapping[str, Imputer], piece: Piece, key: Key
) -> None:
    """Draw early what depends on key and ids alone; on the CPU nothing is gained by that."""
    device, pixels = piece.maps.device, piece.maps[0].numel()
    if device == CPU:
        return
    draw_ties([orders[curve.order] for curve in group], piece.batch.ids, pixels, key, device, piece.batch.units)
    for imputer in {curve.imputer: imputers[curve.imputer] for curve in group}.values():
        if hasattr(imputer, "draw"):
            imputer.draw(piece.batch, key)


def _measured(
    curves: Mapping[Curve, Sequence[float]],
    seeds: Mapping[int, Sequence[Curve]],
    orders: Mapping[str, Order],
    imputers: Mapping[str, Imputer],
    evaluators: Mapping[Curve, Evaluator],
    piece: Piece,
) -> dict[tuple[Curve, float], Tensor]:
    """What is needed of the probabilities at each point, where they are."""
    results = {}
    for seed, group in seeds.items():
        key = Key(seed)
        own = {curve.order: orders[curve.order] for curve in group}
        ranks = rank(own, piece.maps, piece.batch.ids, key, piece.batch.units)
        for curve in group:
            fractions = curves[curve]
            images = imputed(imputers[curve.imputer], piece.batch, ranks[curve.order], fractions, key)
            for fraction, (removed, left) in zip(fractions, images, strict=True):
                results[curve, fraction] = _summary(evaluators[curve](left, removed), piece.targets)
    return results


def _collected(
    piece: Piece, results: Mapping[tuple[Curve, float], Tensor]
) -> Iterator[tuple[tuple[Curve, float], Predictions]]:
    """The results of a piece, brought back all at once."""
    together = torch.stack(list(results.values())).cpu().numpy()
    for point, summary in zip(results, together, strict=True):
        yield point, _predictions(piece.ids, piece.labels, summary)


def _summary(probabilities: Tensor, targets: Labels) -> Tensor:
    """float64 `(3, n)`, which holds all exactly: predicted class, probability of the target, 1 where NaN occurs."""
    known = probabilities.to(targets.device)
    probability = known.gather(1, targets[:, None])[:, 0]
    return torch.stack([known.argmax(dim=1).double(), probability.double(), known.isnan().any(dim=1).double()])


def _predictions(ids: NDArray[np.int64], labels: NDArray[np.int64], summary: NDArray[np.float64]) -> Predictions:
    predicted, probability, invalid = summary
    if invalid.any():
        raise returned_nan()
    return Predictions(ids, labels, predicted.astype(np.int64), probability.astype(np.float32))


def predictions(batch: Batch, targets: Labels, probabilities: Tensor) -> Predictions:
    return _predictions(_numpy(batch.ids), _numpy(batch.labels), _summary(probabilities, targets).cpu().numpy())


def _numpy(integers: Tensor) -> NDArray[np.int64]:
    return integers.cpu().numpy().astype(np.int64)


def tied(maps: Maps, units: Partition | None = None) -> NDArray[np.float64]:
    """`(n, 2)`: the fraction of pixels, or units, whose value another of the image has too, and 1 where all are equal.

    >>> tied(torch.tensor([[[1.0, 2.0], [3.0, 1.0]], [[5.0, 5.0], [5.0, 5.0]]])).tolist()
    [[0.5, 0.0], [1.0, 1.0]]
    """
    if units is not None:
        values, result = units.pool(maps), np.empty((len(maps), 2))
        for number, rows in units.groups(len(maps)):
            result[rows] = tied(values[rows, :number])
        return result
    ordered = maps.flatten(1).sort(dim=1).values
    same = torch.nn.functional.pad(ordered[:, 1:] == ordered[:, :-1], (1, 1))  # as the previous value
    fraction = (same[:, 1:] | same[:, :-1]).double().mean(dim=1)
    return torch.stack([fraction, (ordered[:, 0] == ordered[:, -1]).double()], dim=1).numpy()
