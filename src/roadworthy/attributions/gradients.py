"""Attributions from gradients, on the network's normalized input: gradient, input × gradient, IG, Guided Backprop.

Each is written on one function, `class_gradient`, as `maps(network, inputs, targets) -> (n, c, h, w)`; ensembles call
that on noisy inputs. Captum's versions agree with them (a test says so); these need no hooks and no copies.
"""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol, final

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.graph import Node

from roadworthy.attributions.maps import Reduce, reduced
from roadworthy.core.errors import ModelError, NotGuidedWarning, RangeError
from roadworthy.core.random import Key
from roadworthy.core.types import Batch, Labels, Maps, Model


class GradientBased(Protocol):
    """An attribution that can also explain inputs in normalized space: what ensembles are made of."""

    def maps(self, network: nn.Module, inputs: Tensor, targets: Labels) -> Tensor: ...


@final
@dataclass(frozen=True)
class Gradient:
    """The gradient of the class logit (signed)."""

    reduce: Reduce = "sum"

    def maps(self, network: nn.Module, inputs: Tensor, targets: Labels) -> Tensor:
        return class_gradient(network, inputs, targets)

    def __call__(self, model: Model, batch: Batch, key: Key) -> Maps:
        return _explained(self, model, batch)


@final
@dataclass(frozen=True)
class InputXGradient:
    """Normalized input times gradient."""

    reduce: Reduce = "sum"

    def maps(self, network: nn.Module, inputs: Tensor, targets: Labels) -> Tensor:
        return inputs * class_gradient(network, inputs, targets)

    def __call__(self, model: Model, batch: Batch, key: Key) -> Maps:
        return _explained(self, model, batch)


@final
@dataclass(frozen=True)
class IntegratedGradients:
    """Integrated Gradients (Sundararajan 2017) from a zero baseline in normalized space, by Gauss-Legendre steps."""

    steps: int = 50
    reduce: Reduce = "sum"

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise RangeError(f"IntegratedGradients(steps={self.steps}): at least one step is needed")

    def maps(self, network: nn.Module, inputs: Tensor, targets: Labels) -> Tensor:
        total = torch.zeros_like(inputs)
        for position, weight in _legendre(self.steps):
            total += weight * class_gradient(network, position * inputs, targets)
        return inputs * total

    def __call__(self, model: Model, batch: Batch, key: Key) -> Maps:
        return _explained(self, model, batch)


@final
@dataclass(frozen=True)
class GuidedBackprop:
    """Guided Backprop (Springenberg 2014): at each ReLU only positive gradients flow back.

    It acts on the ReLUs of the autograd graph, so in-place, shared and functional ones are all guided. Other
    activations are named in a warning; a graph without any ReLU is an error, not a plain gradient in disguise.
    """

    reduce: Reduce = "sum"

    def maps(self, network: nn.Module, inputs: Tensor, targets: Labels) -> Tensor:
        return class_gradient(network, inputs, targets, guided=True)

    def __call__(self, model: Model, batch: Batch, key: Key) -> Maps:
        return _explained(self, model, batch)


def class_gradient(network: nn.Module, inputs: Tensor, targets: Labels, guided: bool = False) -> Tensor:
    """The gradient of each image's target logit with respect to its own pixels; parameters gather no gradient."""
    with torch.enable_grad():
        inputs = inputs.detach().requires_grad_()
        logits = network(inputs)
        if not logits.requires_grad:
            raise ModelError("no gradient reaches the images: the model detaches them or runs under no_grad()")
        chosen = logits.gather(1, targets[:, None]).sum()
        hooks = _guide(chosen.grad_fn) if guided else []
        (gradient,) = torch.autograd.grad(chosen, inputs)
        for hook in hooks:
            hook.remove()
    return gradient


def _explained(method: Any, model: Model, batch: Batch) -> Maps:
    return reduced(method.maps(model.network, model.normalize(batch.images), batch.labels), method.reduce)


@lru_cache
def _legendre(steps: int) -> tuple[tuple[float, float], ...]:
    """Nodes and weights of the Gauss-Legendre rule on [0, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(steps)
    return tuple(zip(((nodes + 1) / 2).tolist(), (weights / 2).tolist(), strict=True))


_UNGUIDED = (
    "ClampMin", "Clamp", "Elu", "Gelu", "Glu", "Hardswish", "Hardtanh", "LeakyRelu", "Mish", "Prelu", "Rrelu",
    "Silu", "Softplus", "Threshold",
)  # fmt: skip


def _guide(root: Node | None) -> list[Any]:
    """Clamp the gradient that each ReLU of the graph passes down; return the hooks."""
    nodes = list(_graph(root))
    relus = [node for node in nodes if _operation(node) == "Relu"]
    others = sorted({_operation(node) for node in nodes} & set(_UNGUIDED))
    if not relus:
        found = f"only {', '.join(others)}" if others else "none that it knows"
        raise ModelError(
            f"Guided Backprop is defined by ReLUs and this model's graph has {found}: "
            "choose another method for it (compiled models hide their ReLUs: give the original)"
        )
    if others:
        warnings.warn(
            f"Guided Backprop guides the {len(relus)} ReLUs only; through {', '.join(others)} it is the plain gradient",
            NotGuidedWarning,
            stacklevel=2,
        )
    return [relu.register_hook(_only_positive) for relu in relus]


def _only_positive(passed: tuple[Tensor | None, ...], _: tuple[Tensor, ...]) -> tuple[Tensor | None, ...]:
    return tuple(None if gradient is None else gradient.clamp(min=0) for gradient in passed)


def _operation(node: Node) -> str:
    """`ReluBackward0` is Relu."""
    return node.name().partition("Backward")[0]


def _graph(root: Node | None) -> Iterator[Node]:
    seen: set[Node | None] = {None}
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node in seen or node is None:
            continue
        seen.add(node)
        yield node
        waiting.extend(parent for parent, _ in node.next_functions)
