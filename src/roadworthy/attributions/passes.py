"""Passes for gradients that are faster on a CPU and the same up to rounding; the network is used as it is.

- Inputs, and weights of convolutions, are stored pixel by pixel (`channels_last`). No gradient of weights is computed,
  which torch may get wrong in this format (`training/loop.py`).
- Batch normalization in eval mode multiplies on its way back; torch's computes gradients of its parameters, too.
- Of a line `origin + position · path` only the weighted sum of gradients is needed. A convolution that reads the inputs
  is itself such a line: it is computed at origin and path alone, and gradients are summed before they pass it.

torch calls `FasterPass.__torch_function__` instead of the network's operations. A network that fails this way, or
returns other logits on two images of noise, is passed through in torch's own way.
"""

from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.grad import conv2d_input
from torch.overrides import TorchFunctionMode

from roadworthy.core.random import Key

_TOLERANCE = 1e-3
"""of the logits, as a share of the largest: rounding stays far below it, a misread memory layout far above"""
_SAME: "WeakKeyDictionary[nn.Module, bool]" = WeakKeyDictionary()
"""Whether a network's logits are the same both ways; tried once per network."""


def faster(network: Any, inputs: Tensor) -> bool:
    """Whether the network can be passed in the faster way."""
    if not isinstance(network, nn.Module) or network.training or torch.is_autocast_enabled("cpu"):
        return False
    if inputs.device.type != "cpu" or inputs.dtype != torch.float32 or inputs.ndim != 4:
        return False
    if not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return False
    if network not in _SAME:
        _SAME[network] = not any(map(_compiled, network.modules())) and _same(network, _trial(inputs))
    return _SAME[network]


def _trial(inputs: Tensor) -> Tensor:
    """Noise of their shape: the same whatever images a process sees first, so that all processes decide alike."""
    return Key(0).fold("trial").normal(range(2), tuple(inputs.shape[1:])).to(inputs.dtype)


def _compiled(module: nn.Module) -> bool:
    """What is compiled does not call torch's functions one by one."""
    return type(module).__name__ == "OptimizedModule" or getattr(module, "_compiled_call_impl", None) is not None


def _same(network: nn.Module, inputs: Tensor) -> bool:
    lines, positions = Lines(torch.zeros_like(inputs), inputs), (0.5, 1.0)
    with torch.enable_grad():
        try:
            with FasterPass(lines):
                logits = network(lines.points(positions, positions))
                lines.collect(logits.sum())
        except RuntimeError:
            return False
        with torch.no_grad():
            expected = network(torch.cat([position * inputs for position in positions]))
    return bool((logits - expected).abs().max() <= _TOLERANCE * expected.abs().max())


def pixel_by_pixel(images: Tensor) -> Tensor:
    return images.detach().contiguous(memory_format=torch.channels_last)


class _Line:
    """Values at `origin + position · path`; `receptor` receives their gradients, weighted and summed."""

    def __init__(self, origin: Tensor, path: Tensor, back: Callable[[Tensor], Tensor]):
        self.origin, self.path, self.back = origin, path, back
        self.receptor = path.new_zeros(()).expand(path.shape).requires_grad_()
        self.total: Tensor | None = None

    def points(self, positions: Sequence[float], weights: Sequence[float]) -> Tensor:
        return _Points.apply(self.receptor, self.origin, self.path, positions, weights)  # type: ignore[no-any-return, no-untyped-call]


class _Points(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        receptor: Tensor,
        origin: Tensor,
        path: Tensor,
        positions: Sequence[float],
        weights: Sequence[float],
    ) -> Tensor:
        ctx.weights = weights
        size = (len(positions) * len(path), *path.shape[1:])
        points = path.new_empty(size).contiguous(memory_format=torch.channels_last)
        for position, part in zip(positions, torch.split(points, len(path)), strict=True):
            torch.add(origin, path, alpha=position, out=part)
        return points

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradients: Tensor) -> tuple[Tensor | None, ...]:
        parts = torch.split(gradients, len(gradients) // len(ctx.weights))
        total = ctx.weights[0] * parts[0]
        for weight, part in zip(ctx.weights[1:], parts[1:], strict=True):
            total.add_(part, alpha=weight)
        return total, None, None, None, None


class Lines:
    """The inputs along a line, the lines that convolutions make of it, and their gradients, summed over passes."""

    def __init__(self, origin: Tensor, path: Tensor):
        self._inputs = _Line(origin, pixel_by_pixel(path), lambda gradient: gradient)
        self._convolved: dict[tuple[Any, ...], _Line] = {}
        self._points: tuple[Tensor, int] | None = None
        self._at: tuple[Sequence[float], Sequence[float]] = ((), ())

    def points(self, positions: Sequence[float], weights: Sequence[float]) -> Tensor:
        """The inputs of the next pass: all images at the first position come first."""
        self._at = positions, weights
        points = self._inputs.points(positions, weights)
        self._points = points, points._version
        return points

    def are(self, inputs: Tensor) -> bool:
        """Whether these are the points of this pass, unchanged."""
        return self._points is not None and inputs is self._points[0] and inputs._version == self._points[1]

    def convolved(self, weight: Tensor, bias: Tensor | None, *options: Any) -> Tensor:
        name = (id(weight), id(bias), *options)
        if name not in self._convolved:
            self._convolved[name] = self._convolution(weight, bias, *options)
        return self._convolved[name].points(*self._at)

    def _convolution(self, weight: Tensor, bias: Tensor | None, *options: Any) -> _Line:
        origin, path = self._inputs.origin, self._inputs.path

        def back(gradient: Tensor) -> Tensor:
            return conv2d_input(path.shape, weight, gradient, *options)  # type: ignore[no-any-return, no-untyped-call]

        with torch.no_grad():
            start = origin + torch.zeros_like(path[:1])
            return _Line(F.conv2d(start, weight, bias, *options), F.conv2d(path, weight, None, *options), back)

    def collect(self, target: Tensor) -> None:
        """Add the gradients of this pass."""
        lines = [self._inputs, *self._convolved.values()]
        gradients = torch.autograd.grad(target, [line.receptor for line in lines], allow_unused=True)
        for line, gradient in zip(lines, gradients, strict=True):
            if gradient is not None:
                line.total = gradient if line.total is None else line.total.add_(gradient)

    def gradient(self) -> Tensor:
        """The weighted sum of all gradients with respect to the inputs."""
        lines = [self._inputs, *self._convolved.values()]
        with torch.no_grad():
            parts = [line.back(line.total) for line in lines if line.total is not None]
            return sum(parts[1:], start=parts[0])


class _BatchNorm(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, mean: Tensor, var: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float
    ) -> Tensor:
        factor = (var + eps).rsqrt()
        ctx.save_for_backward(factor if weight is None else factor * weight)
        return F.batch_norm(x, mean, var, weight, bias, eps=eps)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradients: Tensor) -> tuple[Tensor | None, ...]:
        (factor,) = ctx.saved_tensors
        return gradients * factor.reshape(-1, *[1] * (gradients.ndim - 2)), None, None, None, None, None


class FasterPass(TorchFunctionMode):
    """While it is entered, convolutions and batch normalization take the faster way where that is the same."""

    def __init__(self, lines: Lines | None = None):
        super().__init__()
        self._lines = lines
        self._stored: dict[int, Tensor] = {}

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if set(types) <= {Tensor, nn.Parameter}:  # other classes may define operations of their own
            func = {F.conv2d: self._convolution, F.batch_norm: _batch_norm}.get(func, func)
        return func(*args, **(kwargs or {}))

    def _convolution(
        self,
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:
        options = (stride, padding, dilation, groups)
        if not (_lasting(weight, bias) and input.is_contiguous(memory_format=torch.channels_last)):
            return F.conv2d(input, weight, bias, *options)
        if self._lines and self._lines.are(input) and weight.dtype == input.dtype and not isinstance(padding, str):
            return self._lines.convolved(weight, bias, *options)
        return F.conv2d(input, self._weight(weight), bias, *options)

    def _weight(self, weight: Tensor) -> Tensor:
        if id(weight) not in self._stored:
            self._stored[id(weight)] = pixel_by_pixel(weight)
        return self._stored[id(weight)]


def _batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    if (
        training
        or running_mean is None
        or running_var is None
        or not _constant(running_mean, running_var, weight, bias)
    ):
        return F.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)
    return _BatchNorm.apply(input, running_mean, running_var, weight, bias, eps)  # type: ignore[no-any-return, no-untyped-call]


def _constant(*parameters: Tensor | None) -> bool:
    """Whether they cannot depend on the inputs."""
    return all(p is None or isinstance(p, nn.Parameter) or not p.requires_grad for p in parameters)


def _lasting(*parameters: Tensor | None) -> bool:
    """Whether they are the network's own. A weight that is computed in each pass, such as a normalized one, may later
    have its place in memory, by which we recognize it, taken by another."""
    return all(p is None or isinstance(p, nn.Parameter) for p in parameters)
