"""The smallest useful calls: impute removed pixels, see which pixels a map removes, score one set of maps."""

from typing import Any, Literal, NamedTuple, overload

import torch

from roadworthy.attributions.maps import as_maps
from roadworthy.core.errors import InputError, ShapeError
from roadworthy.core.masks import FRACTIONS, checked_fractions, removed_at
from roadworthy.core.partitions import UnitReduction
from roadworthy.core.random import Key
from roadworthy.core.types import UNLABELED, Batch, Images, Imputer, Removed
from roadworthy.datasets import Arrays
from roadworthy.datasets.arrays import checked_batch
from roadworthy.evaluation.orders import rank
from roadworthy.evaluation.units import FeatureMask, Patches, Pixels, UnitSetting
from roadworthy.experiments.adapt import (
    DataLike,
    ImputerLike,
    MethodLike,
    ModelLike,
    UnitsLike,
    as_imputer,
    as_units,
)
from roadworthy.experiments.arguments import check_choices
from roadworthy.experiments.compare import compare
from roadworthy.experiments.registry import lookup


def impute(imputer: Imputer | str, images: Any, removed: Any, *, seed: int = 0, ids: Any = None) -> Images:
    """Impute the `removed` pixels (True = removed) of `images` `(n, c, h, w)` in [0, 1].

    >>> images, removed = torch.tensor([[[[0.2, 0.5, 0.4]]]]), torch.tensor([[[False, True, False]]])
    >>> from roadworthy import NoisyLinear
    >>> impute(NoisyLinear(noise=0), images, removed)[0, 0, 0]
    tensor([0.2000, 0.3000, 0.4000])
    """
    batch = checked_batch(images, ids)
    mask = torch.as_tensor(removed)
    expected = (len(batch), *batch.images.shape[-2:])
    if mask.dtype != torch.bool or tuple(mask.shape) != expected:
        raise ShapeError(f"removed is {mask.dtype} {tuple(mask.shape)}: give a bool mask {expected}, True = removed")
    # A name may stand for an imputer that is made from the images, as "mean" is.
    built = as_imputer(imputer, Arrays(batch.images) if isinstance(imputer, str) else None)
    return built(batch, mask, Key(seed))  # type: ignore[operator]


def removal_mask(
    maps: Any,
    fraction: float,
    order: str = "morf",
    *,
    units: UnitsLike = "pixels",
    unit_reduction: UnitReduction = "mean",
    seed: int = 0,
    ids: Any = None,
) -> Removed:
    """The pixels removed at `fraction`: bool `(n, h, w)`, exactly floor(fraction·h·w + ½) per image.

    With `units` such as `rw.Patches(16)` or `rw.FeatureMask(labels)`, exactly floor(fraction·k + ½) of the k units.

    >>> removal_mask(torch.tensor([[[0.1, 0.9], [0.5, 0.3]]]), 0.5)
    tensor([[[False,  True],
             [ True, False]]])
    """
    checked_fractions([fraction])
    relevance = torch.as_tensor(maps)
    if relevance.ndim != 3:
        raise ShapeError(f"maps {tuple(relevance.shape)}: give one value per pixel, (n, h, w)")
    samples = torch.arange(len(relevance)) if ids is None else torch.as_tensor(ids)
    batch = _with_units(relevance, samples, units, unit_reduction)
    checked = as_maps("maps", relevance, samples, relevance[:, None], units=batch.units)
    ranks = rank({order: lookup("orders", order).make()}, checked, samples, Key(seed), batch.units)
    return removed_at(ranks[order], fraction, batch.units)


def _with_units(maps: torch.Tensor, ids: torch.Tensor, units: UnitsLike, reduction: UnitReduction) -> Batch:
    """A batch as large as the maps, for units that need no images."""
    check_choices("label", "sum", reduction)
    chosen = as_units(units)
    if not isinstance(chosen, Pixels | Patches | FeatureMask):
        raise InputError(
            f"units={chosen!r} may depend on images or a model: give rw.FeatureMask(labels) or rw.Patches(16) here"
        )
    if isinstance(chosen, FeatureMask):
        chosen = chosen.bound(ids)
    return UnitSetting(chosen, reduction)(Batch(ids, maps[:, None], torch.full((len(ids),), UNLABELED)))


class RoadScore(NamedTuple):
    """A ROAD score and its 95 % interval over images."""

    score: float
    low: float
    high: float


@overload
def road(
    model: ModelLike,
    images: DataLike,
    labels: Any,
    maps: MethodLike,
    *,
    imputer: ImputerLike = ...,
    fractions: Any = ...,
    units: UnitsLike = ...,
    seed: int = ...,
    return_interval: Literal[False] = ...,
    **options: Any,
) -> float: ...
@overload
def road(
    model: ModelLike,
    images: DataLike,
    labels: Any,
    maps: MethodLike,
    *,
    imputer: ImputerLike = ...,
    fractions: Any = ...,
    units: UnitsLike = ...,
    seed: int = ...,
    return_interval: Literal[True],
    **options: Any,
) -> RoadScore: ...
def road(
    model: ModelLike,
    images: DataLike,
    labels: Any,
    maps: MethodLike,
    *,
    imputer: ImputerLike = "linear",
    fractions: Any = FRACTIONS,
    units: UnitsLike = "pixels",
    seed: int = 0,
    return_interval: bool = False,
    **options: Any,
) -> float | RoadScore:
    """The ROAD score of one set of maps: LeRF area − MoRF area of the accuracy, in [−1, 1]; higher is better.

    `maps`: whatever `compare` takes as a method. `units`: what is removed at a time, pixels or patches (docs/units.md).
    With `return_interval`, the score and its 95 % interval over images.
    `options` are those of `compare`, such as batch_size and device. A score alone does not say whether one method is
    better than another: for that, use `compare`, which tests the difference on the same images.
    """
    comparison = compare(
        model, (images, labels), {"maps": maps}, imputers=imputer, fractions=fractions, units=units, seeds=(seed,),
        controls=(),
        **{"progress": False, **options},
    )  # fmt: skip
    row = comparison.ranking().iloc[0]
    score = RoadScore(float(row["srg"]), float(row["srg_low"]), float(row["srg_high"]))
    return score if return_interval else score.score
