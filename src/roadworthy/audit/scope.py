"""How far imputed images drift from what the model knows: its confidence, and how near real images are to them.

Both are measured for real images in the same way, so that these say what is usual.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import torch
from torch import Tensor, nn

from roadworthy.core.types import Ids, Images
from roadworthy.models.normalized import Normalized
from roadworthy.models.prediction import predict


class Answers(NamedTuple):
    """What a model makes of images, all `(n, ...)`."""

    ids: Ids
    predicted: Tensor
    confidence: Tensor
    """probability of the predicted class"""
    features: Tensor
    """the input of the last linear layer `(n, features)`; no columns for a model that has none"""

    @staticmethod
    def join(parts: "list[Answers]") -> "Answers":
        return Answers(*(torch.cat([part[field] for part in parts]) for field in range(4)))


def answers(model: Normalized, ids: Ids, images: Images, device: torch.device) -> Answers:
    with _inputs_of(_last_linear(model)) as inputs:
        probabilities = predict(model, images, device)
    confidence, predicted = probabilities.max(dim=1)
    features = (
        inputs[-1].flatten(1).float().cpu() if inputs and len(inputs[-1]) == len(ids) else torch.empty(len(ids), 0)
    )
    return Answers(ids, predicted, confidence, features)


def distances(answered: Answers, real: Answers) -> Tensor:
    """To the nearest real image of the predicted class, other than the image itself; NaN where there is none."""
    if not real.features.shape[1]:
        return torch.full((len(answered.ids),), torch.nan)
    between = torch.cdist(answered.features.double(), real.features.double())
    usable = (answered.predicted[:, None] == real.predicted[None]) & (answered.ids[:, None] != real.ids[None])
    nearest = between.masked_fill(~usable, torch.inf).min(dim=1).values
    return nearest.masked_fill(nearest.isinf(), torch.nan)


def _last_linear(model: nn.Module) -> nn.Module | None:
    return next((module for module in reversed(list(model.modules())) if isinstance(module, nn.Linear)), None)


@contextmanager
def _inputs_of(layer: nn.Module | None) -> Iterator[list[Tensor]]:
    """Filled with the inputs of a layer, call by call."""
    seen: list[Tensor] = []
    handle = layer.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0].detach())) if layer else None
    try:
        yield seen
    finally:
        if handle:
            handle.remove()
