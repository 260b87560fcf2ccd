"""Remove, impute, predict: the one loop that measures the points of curves.

images ─attribution► maps ─order► ranks ─fraction► removed ─imputer► imputed images ─evaluator► Predictions
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from roadworthy.attributions.maps import ChannelReduction, as_maps
from roadworthy.core.errors import ShapeError
from roadworthy.core.masks import removed_at
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
from roadworthy.evaluation.orders import rank

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
                maps[name] = as_maps(name, computed(method), batch.ids, batch.images, channel_reduction).clone()
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
        masks = [removed_at(ranks, fraction) for fraction in chunk]
        rows = torch.arange(len(batch)).repeat(len(chunk))
        images = _checked(imputer, imputer(batch[rows], torch.cat(masks), key), (len(rows), *batch.images.shape[1:]))
        yield from zip(masks, torch.split(images, len(batch)), strict=True)


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


def sweep(
    curves: Mapping[Curve, Sequence[float]],
    orders: Mapping[str, Order],
    imputers: Mapping[str, Imputer],
    evaluators: Mapping[Curve, Evaluator],
    maps: Maps,
    batch: Batch,
    targets: Labels,
    batch_size: int,
) -> Iterator[tuple[Curve, float, Predictions]]:
    """Predictions of one method at the fractions of each curve, on images with known labels.

    Images are ranked once per seed: an order and its reverse share the sort, all imputers and fractions the ranks.
    """
    pieces: dict[tuple[Curve, float], list[Predictions]] = {
        (curve, fraction): [] for curve, fractions in curves.items() for fraction in fractions
    }
    for rows, piece in batch.split(batch_size):
        for seed, same_seed in groupby(sorted(curves, key=lambda curve: curve.seed), key=lambda curve: curve.seed):
            key, group = Key(seed), list(same_seed)
            used = {curve.order: orders[curve.order] for curve in group}
            ranks = rank(used, maps[rows], piece.ids, key)
            for curve in group:
                fractions = curves[curve]
                images = imputed(imputers[curve.imputer], piece, ranks[curve.order], fractions, key)
                for fraction, (removed, filled) in zip(fractions, images, strict=True):
                    probabilities = evaluators[curve](filled, removed)
                    pieces[curve, fraction].append(predictions(piece, targets[rows], probabilities))
    for (curve, fraction), parts in pieces.items():
        yield curve, fraction, Predictions.join(parts)


def predictions(batch: Batch, targets: Labels, probabilities: Tensor) -> Predictions:
    return Predictions(
        ids=_numpy(batch.ids),
        labels=_numpy(batch.labels),
        predicted=_numpy(probabilities.argmax(dim=1)),
        probability=probabilities.gather(1, targets[:, None])[:, 0].numpy(),
    )


def _numpy(integers: Tensor) -> NDArray[np.int64]:
    return integers.cpu().numpy().astype(np.int64)


def tied(maps: Maps) -> NDArray[np.float64]:
    """`(n, 2)`: the fraction of pixels whose value another pixel of the image has too, and 1 where all are equal.

    >>> tied(torch.tensor([[[1.0, 2.0], [3.0, 1.0]], [[5.0, 5.0], [5.0, 5.0]]])).tolist()
    [[0.5, 0.0], [1.0, 1.0]]
    """
    ordered = maps.flatten(1).sort(dim=1).values
    same = torch.nn.functional.pad(ordered[:, 1:] == ordered[:, :-1], (1, 1))  # as the previous value
    fraction = (same[:, 1:] | same[:, :-1]).double().mean(dim=1)
    return torch.stack([fraction, (ordered[:, 0] == ordered[:, -1]).double()], dim=1).numpy()
