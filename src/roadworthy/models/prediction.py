"""How a classifier is queried: in eval mode, on one device, as probabilities."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import torch
from torch import Tensor

from roadworthy.core.errors import ModelError, RangeError
from roadworthy.core.types import UNLABELED, Batch, Images
from roadworthy.models.normalized import Normalized as Model


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
        raise ModelError("the model returned NaN: check its weights and its normalization (images come in [0, 1])")
    return probabilities


def labeled(batch: Batch, probabilities: Tensor) -> Batch:
    """The batch with every label known: without one, the model's own prediction stands in."""
    classes = probabilities.shape[1]
    unknown = batch.labels == UNLABELED
    wrong = ~unknown & ((batch.labels < 0) | (batch.labels >= classes))
    if wrong.any():
        first = int(wrong.nonzero()[0])
        raise RangeError(
            f"image {int(batch.ids[first])} has label {int(batch.labels[first])}, the model knows classes 0 to "
            f"{classes - 1}: check that labels and model belong together"
        )
    return replace(batch, labels=torch.where(unknown, probabilities.argmax(dim=1), batch.labels))
