"""Inputs along a line, `origin + position · path`: of their gradients only the weighted sum is needed.

A convolution that reads them is itself such a line: it is computed at origin and path alone, and gradients are summed
before they pass it.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from roadworthy.attributions.operations import Kernel, Options, pixel_by_pixel


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
        self._convolved: dict[tuple[Kernel, Options], _Line] = {}
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

    def convolved(self, kernel: Kernel, options: Options) -> Tensor:
        name = (kernel, options)
        if name not in self._convolved:
            self._convolved[name] = self._convolution(kernel, options)
        return self._convolved[name].points(*self._at)

    def _convolution(self, kernel: Kernel, options: Options) -> _Line:
        origin, path = self._inputs.origin, self._inputs.path
        with torch.no_grad():
            start = kernel.forth(origin + torch.zeros_like(path[:1]), options)
            step = F.conv2d(path, kernel.weight, None, *options)
        return _Line(start, step, lambda gradient: kernel.back(gradient, path.shape, options))

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
