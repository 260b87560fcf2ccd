"""Gradient attributions on the network's normalized input: gradient, input × gradient, IG, Guided Backprop.

Each builds `maps(network, inputs, targets) -> (n, c, h, w)` from `class_gradient`; ensembles call it on noisy inputs.
Where `maps` has a parameter `baseline` too, it gets the baseline in the network's input space. They agree with Captum's
(see the tests) but need neither module hooks nor expanded copies of the input.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from inspect import signature
from typing import Any, Protocol, TypeVar, final

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.graph import Node

from roadworthy.attributions.baselines import BaselineLike, baseline_inputs, checked_baseline
from roadworthy.attributions.faster_pass import faster_pass
from roadworthy.attributions.lines import Lines
from roadworthy.attributions.maps import ChannelReduction, reduced
from roadworthy.attributions.operations import pixel_by_pixel
from roadworthy.attributions.passes import faster
from roadworthy.core.errors import ModelError, NotGuidedWarning, RangeError
from roadworthy.core.random import Key
from roadworthy.core.types import Batch, Images, Labels, Maps, Model

_T = TypeVar("_T")
_FULL_PASS = 64 * 32 * 32
"""pixels; with fewer, the processor waits for the program"""


class GradientBased(Protocol):
    """An attribution that can also explain inputs in normalized space, as ensembles need."""

    @property
    def maps(self) -> Callable[..., Tensor]:
        """`maps(network, inputs, targets)`, or `maps(network, inputs, targets, baseline)`.

        `baseline`, `(n or 1, c, h, w)` in normalized space, is the attribute `baseline`, by default "mean".
        """


@final
@dataclass(frozen=True)
class Gradient:
    """The gradient of the class logit (signed)."""

    channel_reduction: ChannelReduction = "sum"

    def maps(self, network: nn.Module, inputs: Tensor, targets: Labels) -> Tensor:
        return class_gradient(network, inputs, targets)

    def __call__(self, model: Model, batch: Batch, key: Key) -> Maps:
        return _reduced_maps(self, model, batch)


@final
@dataclass(frozen=True)
class InputXGradient:
    """Normalized input, minus the baseline, times gradient."""

    channel_reduction: ChannelReduction = "sum"
    baseline: BaselineLike = "mean"
    """the model's normalization mean (gray .5 if it shows none), "black", "blur", a color or an image in [0, 1]"""

    def __post_init__(self) -> None:
        object.__setattr__(self, "baseline", checked_baseline(self.baseline))

    def maps(self, network: nn.Module, inputs: Tensor, targets: Labels, baseline: Tensor | float = 0.0) -> Tensor:
        return (inputs - baseline) * class_gradient(network, inputs, targets)

    def __call__(self, model: Model, batch: Batch, key: Key) -> Maps:
        return _reduced_maps(self, model, batch)


@final
@dataclass(frozen=True)
class IntegratedGradients:
    """Integrated Gradients (Sundararajan 2017) from a baseline, by Gauss-Legendre quadrature."""

    steps: int = 50
    channel_reduction: ChannelReduction = "sum"
    baseline: BaselineLike = "mean"
    """the model's normalization mean (gray .5 if it shows none), "black", "blur", a color or an image in [0, 1]"""

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise RangeError(f"IntegratedGradients(steps={self.steps}): must be at least 1")
        object.__setattr__(self, "baseline", checked_baseline(self.baseline))

    def maps(self, network: nn.Module, inputs: Tensor, targets: Labels, baseline: Tensor | float = 0.0) -> Tensor:
        origin = torch.as_tensor(baseline, dtype=inputs.dtype, device=inputs.device)
        path = inputs - origin
        return path * line_gradient(network, origin, path, targets, _legendre(self.steps))

    def __call__(self, model: Model, batch: Batch, key: Key) -> Maps:
        return _reduced_maps(self, model, batch)


@final
@dataclass(frozen=True)
class GuidedBackprop:
    """Guided Backprop (Springenberg 2014): each ReLU passes back only positive gradients.

    It acts on the ReLUs of the autograd graph, so in-place, shared and functional ones are all guided. A warning names
    other activations; a graph without any ReLU raises a ModelError.
    """

    channel_reduction: ChannelReduction = "sum"

    def maps(self, network: nn.Module, inputs: Tensor, targets: Labels) -> Tensor:
        return class_gradient(network, inputs, targets, guided=True)

    def __call__(self, model: Model, batch: Batch, key: Key) -> Maps:
        return _reduced_maps(self, model, batch)


def copies_per_pass(images: Tensor) -> int:
    """How many copies of few images fill a pass: up to 64 images of 32², or 4 of any size. Larger passes save nothing.

    >>> [copies_per_pass(torch.empty(n, 3, 32, 32)) for n in (1, 5, 64, 100)]
    [64, 12, 1, 1]
    >>> [copies_per_pass(torch.empty(n, 3, 224, 224)) for n in (1, 3)]
    [4, 1]
    """
    count, pixels = len(images), images[0, 0].numel()
    return max(1, 4 // count, _FULL_PASS // (count * pixels))


def batched(entries: Sequence[_T], size: int) -> Iterator[Sequence[_T]]:
    return (entries[start : start + size] for start in range(0, len(entries), size))


def class_gradient(network: nn.Module, inputs: Tensor, targets: Labels, guided: bool = False) -> Tensor:
    """The gradient of each image's target logit with respect to its input; parameters accumulate no gradient."""
    if faster(network, inputs):
        with suppress(RuntimeError):  # then in torch's own way, which raises it again, or not
            return _class_gradient(network, pixel_by_pixel(inputs), targets, guided, faster_pass())
    return _class_gradient(network, inputs.detach(), targets, guided, nullcontext())


def _class_gradient(
    network: nn.Module, inputs: Tensor, targets: Labels, guided: bool, way: AbstractContextManager[None]
) -> Tensor:
    with torch.enable_grad(), way:
        inputs.requires_grad_()
        target_logits = _target_logits(network, inputs, targets)
        hooks = _guide(target_logits.grad_fn) if guided else []
        (gradient,) = torch.autograd.grad(target_logits, inputs)
        for hook in hooks:
            hook.remove()
    return gradient.contiguous()


def line_gradient(
    network: nn.Module, origin: Tensor, path: Tensor, targets: Labels, nodes: Sequence[tuple[float, float]]
) -> Tensor:
    """The sum of weight · gradient of each target logit at origin + position · path, over (position, weight)."""
    chunks = list(batched(nodes, copies_per_pass(path)))
    if faster(network, path):
        with suppress(RuntimeError):
            return _summed_along(network, Lines(origin, path), targets, chunks)
    total = torch.zeros_like(path)
    for chunk in chunks:
        points = torch.cat([origin + position * path for position, _ in chunk])
        gradients = torch.split(class_gradient(network, points, targets.repeat(len(chunk))), len(path))
        for (_, weight), gradient in zip(chunk, gradients, strict=True):
            total += weight * gradient
    return total


def _summed_along(
    network: nn.Module, lines: Lines, targets: Labels, chunks: Sequence[Sequence[tuple[float, float]]]
) -> Tensor:
    with torch.enable_grad(), faster_pass(lines):
        for chunk in chunks:
            positions, weights = zip(*chunk, strict=True)
            lines.collect(_target_logits(network, lines.points(positions, weights), targets.repeat(len(chunk))))
    return lines.gradient().contiguous()


def _target_logits(network: nn.Module, inputs: Tensor, targets: Labels) -> Tensor:
    logits: Tensor = network(inputs)
    if not logits.requires_grad:
        raise ModelError("no gradient reaches the input: the model detaches it or runs under no_grad()")
    return logits.gather(1, targets[:, None]).sum()


def takes_baseline(method: GradientBased) -> bool:
    return "baseline" in signature(method.maps).parameters


def maps_on(method: GradientBased, model: Model, images: Images) -> Callable[[Tensor, Labels], Tensor]:
    """`method.maps` on inputs and targets, from the baseline of these images if it takes one."""
    maps = partial(method.maps, model.network)
    if not takes_baseline(method):
        return maps
    return partial(maps, baseline=baseline_inputs(getattr(method, "baseline", "mean"), model, images))


def _reduced_maps(method: Any, model: Model, batch: Batch) -> Maps:
    maps = maps_on(method, model, batch.images)
    return reduced(maps(model.normalize(batch.images), batch.labels), method.channel_reduction)


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
    """Clamp the gradient that each ReLU of the graph passes back; return the hooks."""
    nodes = list(_graph(root))
    relus = [node for node in nodes if _operation(node) == "Relu"]
    others = sorted({_operation(node) for node in nodes} & set(_UNGUIDED))
    if not relus:
        activations = f"only {', '.join(others)}" if others else "no known activation"
        raise ModelError(
            f"Guided Backprop needs ReLUs, and this model's graph has {activations}: "
            "choose another method (a compiled model hides its ReLUs: pass the original)"
        )
    if others:
        warnings.warn(
            f"Guided Backprop guides only the {len(relus)} ReLUs; through {', '.join(others)} it is the plain gradient",
            NotGuidedWarning,
            stacklevel=2,
        )
    return [relu.register_hook(_only_positive) for relu in relus]


def _only_positive(gradients: tuple[Tensor | None, ...], _: tuple[Tensor, ...]) -> tuple[Tensor | None, ...]:
    return tuple(None if gradient is None else gradient.clamp_(min=0) for gradient in gradients)


def _operation(node: Node) -> str:
    """`ReluBackward0` -> `Relu`."""
    return node.name().partition("Backward")[0]


def _graph(root: Node | None) -> Iterator[Node]:
    """Every node of the autograd graph, once."""
    seen: set[Node | None] = {None}
    stack = [root]
    while stack:
        node = stack.pop()
        if node in seen or node is None:
            continue
        seen.add(node)
        yield node
        stack.extend(parent for parent, _ in node.next_functions)
