"""Querying a classifier: eval mode, device placement and probabilities."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from copy import copy
from dataclasses import replace
from itertools import chain
from threading import Lock, RLock
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from roadworthy.core.errors import ModelError, RangeError
from roadworthy.core.types import UNLABELED, Batch, Images, Model
from roadworthy.models.normalized import Logits, Normalized

AUTOCAST: Mapping[str, torch.dtype] = {"bfloat16": torch.bfloat16, "float16": torch.float16}
"""Precisions in which a model may compute its predictions, by name."""


@contextmanager
def eval_mode(model: Normalized, device: torch.device | None = None) -> Iterator[torch.device]:
    """Put the model into eval mode, on `device` if given; restore the mode of every module and the device on exit.

    Threads that share a network take turns: one must not restore the mode while another predicts.
    """
    with _lock_of(model):
        modes = [(module, module.training) for module in model.modules()]
        original, device = model.device, device or model.device
        model.eval()
        try:
            _move(model, device)
            with _channels_last(model):
                yield device
        finally:
            _move(model, original)
            for module, training in modes:
                module.training = training


def _move(model: nn.Module, device: torch.device) -> None:
    """As `model.to(device)`, which takes a millisecond even where all is there."""
    if any(tensor.device != device for tensor in chain(model.parameters(), model.buffers())):
        model.to(device)


@contextmanager
def _channels_last(model: Normalized) -> Iterator[None]:
    """The weights of convolutions with channels last, if the model asks for it; as before on exit."""
    weights = [p for p in model.parameters() if model.channels_last and p.ndim == 4 and p.is_contiguous()]
    try:
        for weight in weights:
            weight.data = weight.data.contiguous(memory_format=torch.channels_last)
        yield
    finally:
        for weight in weights:
            weight.data = weight.data.contiguous()


_LOCKS: "WeakKeyDictionary[nn.Module, RLock]" = WeakKeyDictionary()
_MAKING_LOCKS = Lock()


def _lock_of(model: Normalized) -> "RLock":
    """The lock of the user's network, which several wrappers may share; that of the wrapper if there is none."""
    network = model.network.network if isinstance(model.network, Logits) else model.network
    behind = [*getattr(model.network, "behind", ()), model]
    with _MAKING_LOCKS:
        return _LOCKS.setdefault(network if isinstance(network, nn.Module) else behind[0], RLock())


def fastest_device() -> torch.device:
    """The GPU if there is one, else the CPU."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def predict(model: Model, images: Images, device: torch.device) -> Tensor:
    """Probabilities `(n, classes)`, on the CPU; NaN raises a ModelError."""
    predicted = probabilities(model, images, device).cpu()
    if torch.isnan(predicted).any():
        raise returned_nan()
    return predicted


def probabilities(model: Model, images: Images, device: torch.device) -> Tensor:
    """Probabilities `(n, classes)`, on `device` and unchecked, so that nobody waits for them.

    Those of a model that returns probabilities are taken as they are: a second softmax would flatten them. For
    log-probabilities the softmax is exact.
    """
    reduced: torch.dtype | None = getattr(model, "autocast", None)
    placed = images.to(device)
    if getattr(model, "channels_last", False):
        placed = placed.contiguous(memory_format=torch.channels_last)
    with torch.no_grad(), torch.autocast(device.type, reduced) if reduced else nullcontext():
        outputs: Tensor = model(placed)
    given = getattr(model, "outputs", "logits") == "probabilities"
    return outputs.float() if given else outputs.float().softmax(dim=1)


def returned_nan() -> ModelError:
    return ModelError("the model returned NaN: check its weights and its normalization (images are in [0, 1])")


def accelerated(model: Normalized, autocast: torch.dtype | None, channels_last: bool) -> Normalized:
    """The model with other options of prediction; the given one is not changed. Attributions do not use them."""
    if autocast is None and not channels_last:
        return model
    fast = copy(model)  # shares network and buffers
    fast.autocast, fast.channels_last = autocast, channels_last
    return fast


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
