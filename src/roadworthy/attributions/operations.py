"""Convolution and batch normalization whose way back to the inputs is faster on a CPU than torch's own.

Weights are stored pixel by pixel (`channels_last`), and none gets a gradient. Torch may get those of weights wrong in
this format (`training/loop.py`).
"""

from functools import cached_property
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.grad import conv2d_input

_TURNED = 64 * 64 * 9
"""Weights of the largest kernel that is turned."""


def pixel_by_pixel(images: Tensor) -> Tensor:
    return images.detach().contiguous(memory_format=torch.channels_last)


class Options(NamedTuple):
    """Of a convolution."""

    stride: tuple[int, int] = (1, 1)
    padding: tuple[int, int] = (0, 0)
    dilation: tuple[int, int] = (1, 1)
    groups: int = 1


class Normalization(NamedTuple):
    """Of channels, with statistics that are given: `value · factor + shift`."""

    mean: Tensor
    variance: Tensor
    weight: Tensor | None
    bias: Tensor | None
    eps: float

    @property
    def factor(self) -> Tensor:
        factor = (self.variance + self.eps).rsqrt()
        return factor if self.weight is None else factor * self.weight

    @property
    def shift(self) -> Tensor:
        shift = -self.mean * self.factor
        return shift if self.bias is None else shift + self.bias


class Kernel:
    """Weight and bias of a convolution, and of the normalization that follows it."""

    def __init__(self, weight: Tensor, bias: Tensor | None, after: Normalization | None = None):
        self.given = weight, bias, after  # kept, so that no other tensor can take their place in memory
        if after:
            weight = weight * after.factor.view(-1, 1, 1, 1)
            bias = after.shift if bias is None else after.shift + bias * after.factor
        self.weight, self.bias = pixel_by_pixel(weight), None if bias is None else bias.detach()

    @cached_property
    def turned(self) -> Tensor:
        """The weight of the convolution that leads back."""
        return pixel_by_pixel(self.weight.flip(2, 3).transpose(0, 1))

    def forth(self, images: Tensor, options: Options) -> Tensor:
        return F.conv2d(images, self.weight, self.bias, *options)

    def back(self, gradients: Tensor, shape: torch.Size, options: Options) -> Tensor:
        """The gradient with respect to images of this shape.

        From single pixels the way back is a matrix product, and from a convolution of stride 1 another convolution.
        Torch computes both faster than its own way back, but turning a large kernel takes longer than it saves.
        """
        size, padding = self.weight.shape[2:], options.padding
        if options.groups == 1 and options.dilation == (1, 1):
            around = size[0] - 1 - padding[0], size[1] - 1 - padding[1]
            if size == (1, 1) and padding == (0, 0):
                return _spread(gradients, self.weight.flatten(1), shape, options.stride)
            if options.stride == (1, 1) and min(around) >= 0 and self.weight.numel() <= _TURNED:
                return F.conv2d(gradients, self.turned, None, 1, around)
        return conv2d_input(shape, self.weight, gradients, *options)  # type: ignore[no-any-return, no-untyped-call]


def _spread(gradients: Tensor, weight: Tensor, shape: torch.Size, stride: tuple[int, int]) -> Tensor:
    """Each pixel times the weight `(out, in)`, put where the convolution read it."""
    pixels = (gradients.permute(0, 2, 3, 1) @ weight).permute(0, 3, 1, 2)
    if stride == (1, 1):
        return pixels
    images = torch.empty(shape, dtype=gradients.dtype, memory_format=torch.channels_last).zero_()
    images[:, :, :: stride[0], :: stride[1]] = pixels
    return images


def pair(option: Any) -> tuple[int, int]:
    """Of rows and columns."""
    return (option, option) if isinstance(option, int) else (option[0], option[-1])


class _Convolution(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, images: Tensor, kernel: Kernel, options: Options) -> Tensor:
        ctx.given = kernel, images.shape, options
        return kernel.forth(images, options)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradients: Tensor) -> tuple[Tensor | None, ...]:
        kernel, shape, options = ctx.given
        return kernel.back(gradients.contiguous(memory_format=torch.channels_last), shape, options), None, None


class _Normalization(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, by: Normalization) -> Tensor:
        ctx.by = by
        return F.batch_norm(x, by.mean, by.variance, by.weight, by.bias, eps=by.eps)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradients: Tensor) -> tuple[Tensor | None, ...]:
        return gradients * ctx.by.factor.reshape(-1, *[1] * (gradients.ndim - 2)), None


def convolved(images: Tensor, kernel: Kernel, options: Options) -> Tensor:
    return _Convolution.apply(images, kernel, options)  # type: ignore[no-any-return, no-untyped-call]


def normalized(x: Tensor, by: Normalization) -> Tensor:
    return _Normalization.apply(x, by)  # type: ignore[no-any-return, no-untyped-call]
