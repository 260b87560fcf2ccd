"""The user's own functions: `(model, batch, key)`, `(model, batch)`, or `(model, inputs, targets)` as in Quantus."""

from collections.abc import Callable
from dataclasses import dataclass
from inspect import Signature, signature
from typing import Any, final

from roadworthy.attributions.bridges.quantus import Quantus
from roadworthy.core.errors import InputError
from roadworthy.core.random import Key
from roadworthy.core.types import Attribution, Batch, Maps, Model


@final
@dataclass(frozen=True)
class WithoutKey:
    """A function `(model, batch) -> maps`. Its random numbers, if it draws some from torch or NumPy, are seeded."""

    function: Callable[[Model, Batch], Maps]

    def __call__(self, model: Model, batch: Batch, key: Key) -> Maps:
        with key.fold("function", *batch.ids.tolist()).torch_rng():
            return self.function(model, batch)


def as_function(name: str, function: Callable[..., Any]) -> Attribution:
    """A callable as an attribution, by its parameters."""
    try:
        parameters = signature(function)
    except (TypeError, ValueError):  # builtins may have no signature
        return function
    if {"model", "inputs", "targets"} <= parameters.parameters.keys():
        return Quantus(function)
    if _takes(parameters, 3):
        return function
    if _takes(parameters, 2):
        return WithoutKey(function)
    raise InputError(
        f"{name}: a method is called with (model, batch, key) or (model, batch), but takes {parameters}: "
        "write def method(model, batch, key)"
    )


def _takes(parameters: Signature, count: int) -> bool:
    try:
        parameters.bind(*range(count))
    except TypeError:
        return False
    return True
