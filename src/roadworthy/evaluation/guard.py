"""What a method must not do: change the images, labels or model that the other methods are measured with."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from roadworthy.core.errors import ChangedInputWarning, ModelError
from roadworthy.core.types import Batch, Model
from roadworthy.models.modules import ModelState, changes, restore_modes, state_of


class Guard:
    """Calls methods on copies of one batch and compares the model before and after.

    Changed copies and modes do no harm, because nobody else sees the copies and modes are restored: a warning names
    the method. Changed weights and hooks that stay would change every later prediction: a ModelError.
    """

    def __init__(self, model: Model, batch: Batch):
        self._model, self._batch = model, batch.to(model.device)
        self._name = ""
        self._state: ModelState | None = None

    def call(self, function: Callable[[Batch], Any]) -> Any:
        own = _copied(self._batch)
        result = function(own)
        for field in ("images", "labels", "ids"):
            if not torch.equal(getattr(own, field).detach(), getattr(self._batch, field)):
                _warn(f"{self._name} changed the {field} it was given: work on a copy, {field}.clone()")
        return result

    @contextmanager
    def watching(self, name: str) -> Iterator[None]:
        self._name = name
        if not isinstance(self._model, nn.Module):
            yield
            return
        before = self._state or state_of(self._model)
        yield
        after = state_of(self._model)
        if changed := changes(before, after):
            raise ModelError(
                f"{name} {' and '.join(changed)}: every later prediction would be another model's; "
                "work on a copy (copy.deepcopy) and remove hooks"
            )
        if modes := restore_modes(self._model, before.training):
            _warn(f"{name} left {len(modes)} modules of the model in another mode (train or eval): it was restored")
        self._state = before


def _copied(batch: Batch) -> Batch:
    return Batch(batch.ids.clone(), batch.images.clone(), batch.labels.clone(), batch.units)


def _warn(text: str) -> None:
    warnings.warn(text, ChangedInputWarning, stacklevel=4)
