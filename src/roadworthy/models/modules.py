"""Modules behind a callable, and whether something changed a model: its weights, modes or hooks."""

import inspect
from collections.abc import Iterator, Mapping, Sized
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

_DEPTH = 4
"""how far callables that hold callables are followed"""
_LONGEST = 1000
"""longer containers hold data, not networks"""


def modules_behind(function: Any) -> list[nn.Module]:
    """The Modules that a callable may use: in closures, partials, bound methods, attributes and globals.

    >>> network = nn.Linear(2, 2)
    >>> modules_behind(lambda images: network(images)) == modules_behind(network.forward) == [network]
    True
    """
    found: dict[int, nn.Module] = {}
    _collect(function, found, set(), _DEPTH)
    inner = {id(part) for module in found.values() for part in module.modules() if part is not module}
    return [module for key, module in found.items() if key not in inner]


def _collect(value: Any, found: dict[int, nn.Module], seen: set[int], depth: int) -> None:
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, nn.Module):
        found[id(value)] = value
    elif depth and not isinstance(value, Tensor) and (not isinstance(value, Sized) or len(value) <= _LONGEST):
        for inner in _held(value):
            _collect(inner, found, seen, depth - 1)


def _held(value: Any) -> Iterator[Any]:
    """What a value holds: only callables and plain containers are opened."""
    if isinstance(value, partial):
        yield from (value.func, *value.args, *value.keywords.values())
    elif inspect.ismethod(value):
        yield from (value.__self__, value.__func__)
    elif inspect.isfunction(value):
        scope = inspect.getclosurevars(value) if value.__code__.co_freevars or value.__code__.co_names else None
        yield from (*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values())
        if scope is not None:
            yield from (*scope.nonlocals.values(), *(v for v in scope.globals.values() if not inspect.ismodule(v)))
    elif isinstance(value, list | tuple):
        yield from value
    elif isinstance(value, Mapping):
        yield from value.values()
    elif not inspect.isclass(value):
        yield from vars(value).values() if hasattr(value, "__dict__") else ()
        if callable(value) and inspect.isfunction(call := type(value).__call__):
            yield call


class ModelState(NamedTuple):
    """What must be the same before and after a method was called."""

    weights: Mapping[str, int]
    """checksums of parameters and buffers"""
    training: Mapping[str, bool]
    hooks: Mapping[str, int]


_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


def state_of(model: nn.Module) -> ModelState:
    """Cheap: a sum per tensor, far less than one forward pass."""
    modules = dict(model.named_modules())
    tensors = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    return ModelState(
        {name: _checksum(tensor) for name, tensor in tensors.items()},
        {name: module.training for name, module in modules.items()},
        {name: sum(len(getattr(module, hooks, ())) for hooks in _HOOKS) for name, module in modules.items()},
    )


def _checksum(tensor: Tensor) -> int:
    """The sum of the bits, read as integers: exact, and any single change of a value changes it."""
    values = tensor.detach().contiguous().reshape(-1)
    if not values.numel() or values.is_quantized:
        return 0
    integers = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    if values.dtype is torch.bool:
        return int(values.sum())
    if values.is_complex():
        values = torch.view_as_real(values).reshape(-1)
    return int(values.view(integers[values.element_size()]).sum())


def changes(before: ModelState, after: ModelState) -> list[str]:
    """What a method changed that the other methods would be measured with, for people."""
    weights = [name for name, value in before.weights.items() if after.weights.get(name) != value]
    hooks = [name for name, count in before.hooks.items() if after.hooks.get(name) != count]
    return [
        *([f"changed the weights of the model ({_some(weights)})"] if weights else []),
        *([f"left hooks on the model ({_some(hooks)})"] if hooks else []),
    ]


def _some(names: list[str], most: int = 3) -> str:
    shown = ", ".join(name or "the network" for name in names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown


def restore_modes(model: nn.Module, training: Mapping[str, bool]) -> list[str]:
    """Set the mode of every module as it was; returns the names of those that had another."""
    changed = [name for name, module in model.named_modules() if module.training != training.get(name)]
    for name, module in model.named_modules():
        module.training = training.get(name, False)
    return changed
