"""Querying a classifier: eval mode, device placement and probabilities."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import torch
from torch import Tensor

from roadworthy.core.errors import ModelError, RangeError
from roadworthy.core.types import UNLABELED, Batch, Images, Model
from roadworthy.models.normalized import Normalized


@contextmanager
def eval_mode(model: Normalized, device: torch.device | None = None) -> Iterator[torch.device]:
    """Put the model into eval mode, on `device` if given; restore the mode of every module and the device on exit."""
    modes = [(module, module.training) for module in model.modules()]
    original, device = model.device, device or model.device
    model.eval()
    try:
        model.to(device)
        yield device
    finally:
        model.to(original)
        for module, training in modes:
            module.training = training


def fastest_device() -> torch.device:
    """The GPU if there is one, else the CPU."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def predict(model: Model, images: Images, device: torch.device) -> Tensor:
    """Probabilities `(n, classes)`, on the CPU; NaN raises a ModelError.

    Those of a model that returns probabilities are taken as they are: a second softmax would flatten them. For
    log-probabilities the softmax is exact.
    """
    with torch.no_grad():
        outputs: Tensor = model(images.to(device)).float()
        given = getattr(model, "outputs", "logits") == "probabilities"
        probabilities = (outputs if given else outputs.softmax(dim=1)).cpu()
    if torch.isnan(probabilities).any():
        raise ModelError("the model returned NaN: check its weights and its normalization (images are in [0, 1])")
    return probabilities


def with_labels(batch: Batch, probabilities: Tensor) -> Batch:
    """The batch with missing labels replaced by the predicted class."""
    classes = probabilities.shape[1]
    unknown = batch.labels == UNLABELED
    invalid = ~unknown & ((batch.labels < 0) | (batch.labels >= classes))
    if invalid.any():
        row = int(invalid.nonzero()[0])
        raise RangeError(
            f"image {int(batch.ids[row])} has label {int(batch.labels[row])}, the model knows classes 0 to "
            f"{classes - 1}: check that labels and model belong together"
        )
    return replace(batch, labels=torch.where(unknown, probabilities.argmax(dim=1), batch.labels))
