"""The trial: explain a batch, remove as each map says, fill, and let a evaluator decide, image by image."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import torch
from torch import Tensor

from roadworthy.attributions.maps import Reduce, as_maps
from roadworthy.core.masks import removed_at
from roadworthy.core.random import Key
from roadworthy.core.results import Predictions
from roadworthy.core.types import (
    Attribution,
    Batch,
    Derived,
    Evaluator,
    Ids,
    Images,
    Imputer,
    Labels,
    Maps,
    Ranks,
    Removal,
)
from roadworthy.models.normalized import Normalized
from roadworthy.models.prediction import predict

FILLED_AT_ONCE = 32 << 20
"""Bytes of images that are filled in one call."""


@final
@dataclass(frozen=True)
class NoRetrain:
    """No retraining (ROAD): the given model evaluators every point."""

    model: Normalized

    def model_for(self, removal: Removal, fraction: float, key: Key) -> Normalized:
        return self.model


def explain(
    methods: Mapping[str, Attribution], model: Normalized, batch: Batch, key: Key, reduce: Reduce = "sum"
) -> dict[str, Maps]:
    """The checked maps of every method for the classes `batch.labels`; what methods share is computed once."""
    there = batch.to(model.device)
    done: dict[Any, Any] = {}

    def computed(part: Any) -> Any:
        name = part if isinstance(part, Hashable) else id(part)
        if name not in done:
            derived = isinstance(part, Derived)
            done[name] = part.finish(computed(part.source), there) if derived else part(model, there, key)
        return done[name]

    maps = {}
    for name, part in methods.items():
        try:
            maps[name] = as_maps(name, computed(part), batch.ids, batch.images, reduce)
        except Exception as error:
            error.add_note(f"while computing the maps of {name!r}, called as method(model, batch, key)")
            raise
    return maps


def evaluator_batch(
    evaluator: Evaluator,
    removal: Removal,
    ranks: Ranks,
    batch: Batch,
    targets: Labels,
    fractions: Sequence[float],
    key: Key,
    device: torch.device,
) -> Iterator[Predictions]:
    """One Predictions per fraction, of images that were ranked once for all of them, as `removal.order` says."""
    for fraction, images in zip(fractions, fill(removal.imputer, batch, ranks, fractions, key), strict=True):
        probabilities = predict(evaluator.model_for(removal, fraction, key), images, device)
        yield prediction(batch, targets, probabilities)


def fill(imputer: Imputer, batch: Batch, ranks: Ranks, fractions: Sequence[float], key: Key) -> Iterator[Images]:
    """The filled images at each fraction; several fractions at once, as imputers are faster on many images."""
    together = max(1, FILLED_AT_ONCE // max(1, batch.images.nbytes))
    for start in range(0, len(fractions), together):
        some = fractions[start : start + together]
        removed = torch.cat([removed_at(ranks, fraction) for fraction in some])
        rows = torch.arange(len(batch)).repeat(len(some))
        yield from torch.split(imputer(batch[rows], removed, key), len(batch))


def prediction(batch: Batch, targets: Labels, probabilities: Tensor) -> Predictions:
    return Predictions(
        ids=_numpy(batch.ids),
        labels=_numpy(batch.labels),
        predicted=_numpy(probabilities.argmax(dim=1)),
        probability=probabilities.gather(1, targets[:, None])[:, 0].numpy(),
    )


def _numpy(ids: Ids) -> np.ndarray[Any, np.dtype[np.int64]]:
    return ids.cpu().numpy().astype(np.int64)
