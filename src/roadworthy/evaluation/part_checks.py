"""What can be checked of a model, an order and an imputer on a few images, before long work starts."""

import warnings

import torch
from torch import Tensor

from roadworthy.core.errors import InputError, ShapeError, UnstableModelWarning
from roadworthy.core.types import Batch, Images, Ranks, Removed
from roadworthy.models.normalized import Normalized
from roadworthy.models.prediction import predict, returned_nan

STABLE, STABLE_REDUCED = 1e-3, 0.05
"""Probabilities may differ by this much between two calls: convolutions add in another order for another batch. In
reduced precision they differ by more."""


def check_stable(model: Normalized, batch: Batch, device: torch.device) -> None:
    """Warn if a model answers differently when asked again, or when an image comes alone."""
    stable = STABLE if model.autocast is None else STABLE_REDUCED
    first, again = (predict(model, batch.images, device) for _ in range(2))
    if (difference := float((first - again).abs().max())) > stable:
        _warn(f"the model answers differently when asked again (by up to {difference:.3g} in probability)", "dropout")
        return
    alone = torch.cat([predict(model, image[None], device) for image in batch.images])
    if (difference := float((first - alone).abs().max())) > stable:
        _warn(
            f"the model answers differently when an image comes alone (by up to {difference:.3g} in probability)",
            "batch normalization",
        )


def check_probabilities(probabilities: Tensor) -> None:
    if torch.isnan(probabilities).any():
        raise returned_nan()


def _warn(what: str, cause: str) -> None:
    warnings.warn(
        f"{what}: results depend on chance or on the batch size. Is {cause} in train mode behind a function that hides "
        "it? Give the Module itself, or call .eval() on it",
        UnstableModelWarning,
        stacklevel=3,
    )


def check_ranks(name: str, ranks: Ranks, batch: Batch) -> None:
    """An order must return a permutation of the pixels, or units, of each image."""
    shape = (len(batch), *batch.images.shape[-2:])
    if not isinstance(ranks, torch.Tensor) or tuple(ranks.shape) != shape:
        returned = tuple(ranks.shape) if isinstance(ranks, torch.Tensor) else f"a {type(ranks).__name__}"
        raise ShapeError(f"order {name!r} returned {returned}: return ranks {shape}, 0 is removed first")
    thing, numbers = ("pixel", (shape[1] * shape[2],)) if batch.units is None else ("unit", batch.units.counts)
    for own, number in zip(ranks.flatten(1).cpu(), numbers * (len(batch) if len(numbers) == 1 else 1), strict=True):
        if not torch.equal(torch.unique(own), torch.arange(number)):
            raise InputError(
                f"order {name!r} returned ranks that are no permutation: give each {thing} of an image a rank of its "
                f"own, from 0 to {number - 1}"
            )


def check_imputed(name: str, batch: Batch, removed: Removed, filled: Images) -> None:
    """An imputer must keep what was not removed, and fill the rest with finite values."""
    kept = ~removed[:, None].expand_as(batch.images)
    if not torch.equal(filled[kept], batch.images[kept]):
        raise InputError(
            f"imputer {name!r} changed pixels that were not removed: return "
            "torch.where(removed[:, None], filled, batch.images)"
        )
    if not torch.isfinite(filled).all():
        raise InputError(f"imputer {name!r} filled in NaN or infinity: return finite values, near [0, 1]")
