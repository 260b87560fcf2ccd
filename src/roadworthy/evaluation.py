"""The trial: explain a batch, remove as each map says, fill, and let a judge decide, image by image."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
import torch
from torch import Tensor

from roadworthy.attributions.maps import Reduce, as_scores
from roadworthy.errors import ModelError, RangeError
from roadworthy.keys import Key
from roadworthy.removal import removed_at
from roadworthy.types import (
    UNLABELLED,
    Attribution,
    Batch,
    Derived,
    Ids,
    Images,
    Imputer,
    Judge,
    Labels,
    Model,
    Ranks,
    Removal,
    Scores,
    Verdict,
)

FILLED_AT_ONCE = 32 << 20
"""Bytes of images that are filled in one call."""


@final
@dataclass(frozen=True)
class FixedModel:
    """No retraining (ROAD): the given model judges every dot."""

    model: Model

    def model_for(self, removal: Removal, fraction: float, key: Key) -> Model:
        return self.model


@contextmanager
def evaluating(model: Model, device: torch.device | None = None) -> Iterator[torch.device]:
    """The model in eval mode, on `device` if one is given; its modes and its place are put back afterwards."""
    modes = [(module, module.training) for module in model.modules()]
    home, device = model.device, device or model.device
    model.eval()
    try:
        model.to(device)
        yield device
    finally:
        model.to(home)
        for module, training in modes:
            module.training = training


def fastest_device() -> torch.device:
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def predict(model: Model, images: Images, device: torch.device) -> Tensor:
    """Probabilities `(n, classes)` on the CPU; NaN is an error, not a class."""
    with torch.no_grad():
        probabilities: Tensor = model(images.to(device)).float().softmax(dim=1).cpu()
    if torch.isnan(probabilities).any():
        raise ModelError("the model returned NaN: check its weights and its normalisation (images come in [0, 1])")
    return probabilities


def labelled(batch: Batch, probabilities: Tensor) -> Batch:
    """The batch with every label known: without one, the model's own prediction stands in."""
    classes = probabilities.shape[1]
    unknown = batch.labels == UNLABELLED
    wrong = ~unknown & ((batch.labels < 0) | (batch.labels >= classes))
    if wrong.any():
        first = int(wrong.nonzero()[0])
        raise RangeError(
            f"image {int(batch.ids[first])} has label {int(batch.labels[first])}, the model knows classes 0 to "
            f"{classes - 1}: check that labels and model belong together"
        )
    return replace(batch, labels=torch.where(unknown, probabilities.argmax(dim=1), batch.labels))


def explain(
    methods: Mapping[str, Attribution], model: Model, batch: Batch, key: Key, reduce: Reduce = "sum"
) -> dict[str, Scores]:
    """The checked scores of every method for the classes `batch.labels`; what methods share is computed once."""
    there = batch.to(model.device)
    done: dict[Any, Any] = {}

    def computed(part: Any) -> Any:
        name = part if isinstance(part, Hashable) else id(part)
        if name not in done:
            derived = isinstance(part, Derived)
            done[name] = part.finish(computed(part.source), there) if derived else part(model, there, key)
        return done[name]

    scores = {}
    for name, part in methods.items():
        try:
            scores[name] = as_scores(name, computed(part), batch.ids, batch.images, reduce)
        except Exception as error:
            error.add_note(f"while computing the maps of {name!r}, called as method(model, batch, key)")
            raise
    return scores


def judge_batch(
    judge: Judge,
    removal: Removal,
    ranks: Ranks,
    batch: Batch,
    targets: Labels,
    fractions: Sequence[float],
    key: Key,
    device: torch.device,
) -> Iterator[Verdict]:
    """One Verdict per fraction, of images that were ranked once for all of them, as `removal.order` says."""
    for fraction, images in zip(fractions, fill(removal.imputer, batch, ranks, fractions, key), strict=True):
        probabilities = predict(judge.model_for(removal, fraction, key), images, device)
        yield verdict(batch, targets, probabilities)


def fill(imputer: Imputer, batch: Batch, ranks: Ranks, fractions: Sequence[float], key: Key) -> Iterator[Images]:
    """The filled images at each fraction; several fractions at once, as imputers are faster on many images."""
    together = max(1, FILLED_AT_ONCE // max(1, batch.images.nbytes))
    for start in range(0, len(fractions), together):
        some = fractions[start : start + together]
        removed = torch.cat([removed_at(ranks, fraction) for fraction in some])
        rows = torch.arange(len(batch)).repeat(len(some))
        yield from torch.split(imputer(batch[rows], removed, key), len(batch))


def verdict(batch: Batch, targets: Labels, probabilities: Tensor) -> Verdict:
    return Verdict(
        ids=_numpy(batch.ids),
        labels=_numpy(batch.labels),
        predicted=_numpy(probabilities.argmax(dim=1)),
        probability=probabilities.gather(1, targets[:, None])[:, 0].numpy(),
    )


def _numpy(ids: Ids) -> np.ndarray[Any, np.dtype[np.int64]]:
    return ids.cpu().numpy().astype(np.int64)
