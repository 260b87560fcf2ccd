"""A pass in which torch calls us instead of convolutions and batch normalization (`operations.py`).

Batch normalization in eval mode becomes part of the convolution before it. So a convolution is computed when its
outcome is used: by then we know whether a normalization follows. Until then a placeholder stands for it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakValueDictionary

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from roadworthy.attributions.lines import Lines
from roadworthy.attributions.operations import Kernel, Normalization, Options, convolved, normalized, pair


@contextmanager
def faster_pass(lines: Lines | None = None) -> Iterator[None]:
    """For a forward pass and its way back.

    What would be computed anew on the way back (torch.utils.checkpoint) is refused with a RuntimeError: torch would
    compute it in its own way, and confuse what it keeps then with what was kept before.
    """
    way = FasterPass(lines)
    try:
        with torch.autograd.graph.disable_saved_tensors_hooks("checkpoints need torch's own way"), way:
            yield
    finally:
        way.fill()


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
        sizes = zip(self._images.shape[2:], self._convolution[0].shape[2:], *self._options[:3], strict=True)
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
        self._placeholders: WeakValueDictionary[int, Tensor] = WeakValueDictionary()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        plain = set(types) <= {Tensor, nn.Parameter}  # other classes may define operations of their own
        if plain and func is F.batch_norm:
            return self._batch_norm(*args, **kwargs)
        if plain and func in _OF_SHAPE:
            return func(*args, **kwargs)
        args, kwargs = [_value(one) for one in args], {name: _value(one) for name, one in kwargs.items()}
        return self._convolution(*args, **kwargs) if plain and func is F.conv2d else func(*args, **kwargs)

    def kernel(self, weight: Tensor, bias: Tensor | None, after: Normalization | None) -> Kernel:
        name = tuple(one if isinstance(one, float) else id(one) for one in (weight, bias, *(after or ())))
        if name not in self._kernels:
            self._kernels[name] = Kernel(weight, bias, after)
        return self._kernels[name]

    def fill(self) -> None:
        """After the pass: placeholders that the network or a hook has kept get their numbers."""
        for placeholder in list(self._placeholders.values()):
            placeholder.data = placeholder.awaited.value().detach()  # type: ignore[attr-defined]

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
        ours = _lasting(weight, bias) and _ordinary(input, weight) and torch.is_grad_enabled()
        if not ours or isinstance(padding, str) or not input.is_contiguous(memory_format=torch.channels_last):
            return F.conv2d(input, weight, bias, stride, padding, dilation, groups)
        options = Options(pair(stride), pair(padding), pair(dilation), groups)
        placeholder = _Awaited(self, input, weight, bias, options).placeholder()
        self._placeholders[id(placeholder)] = placeholder
        return placeholder

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
        if training or running_mean is None or running_var is None or not (_constant(*given) and _ordinary(input)):
            return F.batch_norm(_value(input), *given, training, momentum, eps)
        by, awaited = Normalization(running_mean, running_var, weight, bias, eps), _awaited(input)
        return awaited.normalized(by) if awaited else normalized(input, by)


def _awaited(given: Any) -> _Awaited | None:
    return getattr(given, "awaited", None) if type(given) is Tensor else None


def _value(given: Any) -> Any:
    """Without placeholders; functions take tensors, or lists of them."""
    if isinstance(given, list | tuple):
        return [_value(one) for one in given] if any(map(_awaited, given)) else given
    awaited = _awaited(given)
    return awaited.value() if awaited else given


def _ordinary(*tensors: Tensor) -> bool:
    """Whether they are real numbers of one type, and nothing is computed in another one."""
    return all(tensor.dtype == torch.float32 for tensor in tensors) and not torch.is_autocast_enabled("cpu")


def _constant(*parameters: Tensor | None) -> bool:
    """Whether they cannot depend on the inputs."""
    return all(p is None or isinstance(p, nn.Parameter) or not p.requires_grad for p in parameters)


def _lasting(*parameters: Tensor | None) -> bool:
    """Whether they are the network's own, not computed in each pass."""
    return all(p is None or isinstance(p, nn.Parameter) for p in parameters)
