"""Passes for gradients that are faster on a CPU and the same up to rounding; the network is used as it is.

- Inputs, and weights of convolutions, are stored pixel by pixel (`operations.py`).
- Batch normalization in eval mode becomes part of the convolution before it. A convolution is computed when its outcome
  is used: by then we know whether a normalization follows.
- Along a line, only the sum of gradients is computed (`lines.py`).

torch calls `FasterPass.__torch_function__` instead of the network's operations. A network that fails this way, or
returns other logits on two images of noise, is passed through in torch's own way.
"""

from typing import Any
from weakref import WeakKeyDictionary

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from roadworthy.attributions.lines import Lines
from roadworthy.attributions.operations import (
    Kernel,
    Normalization,
    Options,
    convolved,
    normalized,
    pair,
    pixel_by_pixel,
)
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
    if not torch.backends.mkldnn.is_available() or any(map(_hooked, network.modules())):  # type: ignore[no-untyped-call]
        return False
    if network not in _SAME:
        _SAME[network] = not any(map(_compiled, network.modules())) and _same(network, _trial(inputs))
    return _SAME[network]


def _trial(inputs: Tensor) -> Tensor:
    """Noise of their shape: the same whatever images a process sees first, so that all processes decide alike."""
    return Key(0).fold("trial").normal(range(2), tuple(inputs.shape[1:])).to(inputs.dtype)


def _hooked(module: nn.Module) -> bool:
    """Whether anybody looks at what it returns: that may be a placeholder, which has no numbers after the pass."""
    return bool(module._forward_hooks or module._backward_hooks or module._backward_pre_hooks)


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


class _Placeholder(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, images: Tensor, shape: tuple[int, ...]) -> Tensor:
        return images.new_full((), torch.nan).expand(shape)

    @staticmethod
    def backward(ctx: Any, gradients: Tensor) -> tuple[Tensor | None, ...]:
        raise RuntimeError("the outcome of a convolution was used in a way that the faster pass does not see")


class _Awaited:
    """What a convolution will return, unless it is followed by a normalization, with which it would be another one."""

    def __init__(self, way: "FasterPass", images: Tensor, weight: Tensor, bias: Tensor | None, options: Options):
        self._way, self._images, self._convolution = way, images, (weight, bias)
        self._version, self._options = images._version, options
        self._on_line = way.lines is not None and way.lines.are(images)
        self._value: Tensor | None = None

    def placeholder(self) -> Tensor:
        """A tensor of the right shape. Who used it unnoticed would get logits that are NaN, and no gradient."""
        sizes = zip(self._images.shape[2:], self._convolution[0].shape[2:], *map(pair, self._options[:3]), strict=True)
        height, width = ((size + 2 * p - d * (k - 1) - 1) // s + 1 for size, k, s, p, d in sizes)
        shape = len(self._images), len(self._convolution[0]), height, width
        placeholder: Tensor = _Placeholder.apply(self._images, shape)  # type: ignore[no-untyped-call]
        placeholder.awaited = self  # type: ignore[attr-defined]
        return placeholder

    def value(self) -> Tensor:
        if self._value is None:
            with torch.enable_grad():
                self._value = self._computed(None)
        return self._value

    def normalized(self, by: Normalization) -> Tensor:
        return self._computed(by) if self._value is None else normalized(self._value, by)

    def _computed(self, after: Normalization | None) -> Tensor:
        if self._images._version != self._version:
            raise RuntimeError("the input of a convolution was changed before its outcome was used")
        kernel = self._way.kernel(*self._convolution, after)
        if self._on_line and self._way.lines:
            return self._way.lines.convolved(kernel, self._options)
        return convolved(self._images, kernel, self._options)


_OF_SHAPE = {Tensor.dim, Tensor.size, Tensor.shape.__get__, Tensor.ndim.__get__}  # type: ignore[attr-defined]
"""what may be asked of a placeholder"""


class FasterPass(TorchFunctionMode):
    """While it is entered, convolutions and batch normalization take the faster way where that is the same."""

    def __init__(self, lines: Lines | None = None):
        super().__init__()
        self.lines = lines
        self._kernels: dict[tuple[Any, ...], Kernel] = {}

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        plain = set(types) <= {Tensor, nn.Parameter}  # other classes may define operations of their own
        if plain and func is F.batch_norm:
            return self._batch_norm(*args, **kwargs)
        if plain and func in _OF_SHAPE:
            return func(*args)
        args, kwargs = [_value(one) for one in args], {name: _value(one) for name, one in kwargs.items()}
        return self._convolution(*args, **kwargs) if plain and func is F.conv2d else func(*args, **kwargs)

    def kernel(self, weight: Tensor, bias: Tensor | None, after: Normalization | None) -> Kernel:
        name = tuple(one if isinstance(one, float) else id(one) for one in (weight, bias, *(after or ())))
        if name not in self._kernels:
            self._kernels[name] = Kernel(weight, bias, after)
        return self._kernels[name]

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
        if weight.dtype != input.dtype or isinstance(padding, str) or not torch.is_grad_enabled():
            return F.conv2d(input, pixel_by_pixel(weight), bias, *options)
        pairs = Options(pair(stride), pair(padding), pair(dilation), groups)
        return _Awaited(self, input, weight, bias, pairs).placeholder()

    def _batch_norm(
        self,
        input: Tensor,
        running_mean: Tensor | None,
        running_var: Tensor | None,
        weight: Tensor | None = None,
        bias: Tensor | None = None,
        training: bool = False,
        momentum: float = 0.1,
        eps: float = 1e-5,
    ) -> Tensor:
        given = running_mean, running_var, weight, bias
        if training or running_mean is None or running_var is None or not _constant(*given):
            return F.batch_norm(_value(input), *given, training, momentum, eps)
        by, awaited = Normalization(running_mean, running_var, weight, bias, eps), _awaited(input)
        return awaited.normalized(by) if awaited else normalized(input, by)


def _awaited(given: Any) -> _Awaited | None:
    return getattr(given, "awaited", None) if type(given) is Tensor else None


def _value(given: Any) -> Any:
    """Without placeholders; functions take tensors, or lists of them."""
    if isinstance(given, list | tuple):
        return type(given)(map(_value, given)) if any(map(_awaited, given)) else given
    awaited = _awaited(given)
    return awaited.value() if awaited else given


def _constant(*parameters: Tensor | None) -> bool:
    """Whether they cannot depend on the inputs."""
    return all(p is None or isinstance(p, nn.Parameter) or not p.requires_grad for p in parameters)


def _lasting(*parameters: Tensor | None) -> bool:
    """Whether they are the network's own, not computed in each pass."""
    return all(p is None or isinstance(p, nn.Parameter) for p in parameters)
