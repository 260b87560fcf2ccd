"""A device that computes on the CPU but obeys the rules of a GPU, and counts what a GPU would have to do.

Tensors on it hold a CPU tensor. Operations that mix it with CPU tensors fail, as on a GPU; only numbers (0-dim tensors)
may be mixed. Every operation is a launch, unless it is a view. What makes a host wait for a GPU is recorded by name,
what is moved by shape. `peak` is the largest number of bytes that were alive at once.
"""

import weakref
from collections import Counter
from copy import deepcopy

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

DEVICE = torch.device("privateuseone:0")
CPU = torch.device("cpu")
WAITS = ("_local_scalar_dense", "item", "nonzero", "masked_select", "unique", "_unique2", "equal", "is_nonzero",
         "repeat_interleave", "bincount", "linalg_inv", "_linalg_check_errors")  # fmt: skip
"""Operations whose result, or its size, the host needs before it can go on."""


class _Guard(torch._C._acc.DeviceGuard):
    def type_(self):
        return torch._C._autograd.DeviceType.PrivateUse1


class _Module:
    """What torch asks of the Python module of a device."""

    is_initialized = is_available = staticmethod(lambda: True)
    _is_in_bad_fork = staticmethod(lambda: False)
    device_count = staticmethod(lambda: 1)
    current_device = staticmethod(lambda: 0)
    manual_seed_all = staticmethod(lambda seed: None)


if not hasattr(torch, "privateuseone"):  # doctests import this file by another name, too
    _GUARD = _Guard()
    torch._register_device_module("privateuseone", _Module())
    torch._C._acc.register_python_privateuseone_device_guard(_GUARD)


class Pretended(torch.Tensor):
    @staticmethod
    def __new__(cls, inner: torch.Tensor):
        return torch.Tensor._make_wrapper_subclass(
            cls, inner.size(), strides=inner.stride(), storage_offset=inner.storage_offset(), dtype=inner.dtype,
            device=DEVICE,
        )  # fmt: skip

    def __init__(self, inner: torch.Tensor):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        raise AssertionError(f"{func} on the device outside of `with PretendDevice()`")


class PretendDevice(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.launches: Counter[str] = Counter()
        self.waits: Counter[str] = Counter()
        self.to_device: list[tuple[int, ...]] = []
        """shapes that were moved there"""
        self.to_host: list[tuple[int, ...]] = []
        self.alive = self.peak = 0
        self._storages: set[int] = set()

    def place(self, tensor: torch.Tensor) -> torch.Tensor:
        """Put a tensor there without counting it."""
        return self._wrapped(tensor.clone())

    def place_module(self, module: torch.nn.Module) -> torch.nn.Module:
        """A copy whose weights are there, as buffers."""
        module = deepcopy(module)
        for part in module.modules():
            tensors = {**part._parameters, **part._buffers}
            part._parameters.clear()
            part._buffers.update({n: t if t is None else self.place(t.detach()) for n, t in tensors.items()})
        return module

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs, name = dict(kwargs or {}), func.__name__.split(".")[0]
        flat = tree_flatten((args, kwargs))[0]
        tensors = [leaf for leaf in flat if isinstance(leaf, torch.Tensor)]
        here = any(isinstance(tensor, Pretended) for tensor in tensors)
        target = kwargs.get("device")
        to_device = here if target is None else torch.device(target).type == DEVICE.type
        if name in ("_to_copy", "copy_") and self._moves(name, tensors, here, to_device):
            return self._moved(func, name, args, kwargs, to_device)
        if here:
            for tensor in tensors:
                assert isinstance(tensor, Pretended) or tensor.ndim == 0, f"{name} mixes the device with the CPU"
        if here or to_device:
            if name in WAITS:
                self.waits[name] += 1
            elif not _is_view(func):
                self.launches[name] += 1
        if target is not None:
            kwargs["device"] = CPU
        result = func(*tree_map(_inner, args), **tree_map(_inner, kwargs))
        if not (here or to_device):
            return result
        if name.endswith("_") and not name.endswith("__") and isinstance(args[0], Pretended):
            return args[0]
        return tree_map(lambda leaf: self._wrapped(leaf) if isinstance(leaf, torch.Tensor) else leaf, result)

    def _moves(self, name, tensors, here, to_device) -> bool:
        if name == "copy_":
            return len({isinstance(tensor, Pretended) for tensor in tensors}) == 2
        return here != to_device

    def _moved(self, func, name, args, kwargs, to_device):
        source = args[1] if name == "copy_" else args[0]
        to_device = isinstance(args[0], Pretended) if name == "copy_" else to_device
        (self.to_device if to_device else self.to_host).append(tuple(source.shape))
        if "device" in kwargs:
            kwargs["device"] = CPU
        result = func(*tree_map(_inner, args), **kwargs)
        if name == "copy_":
            return args[0]
        return self._wrapped(result) if to_device else result

    def _wrapped(self, inner: torch.Tensor) -> Pretended:
        storage = inner.untyped_storage()
        name = storage._cdata
        if name not in self._storages:
            size = storage.nbytes()
            self._storages.add(name)
            self.alive += size
            self.peak = max(self.peak, self.alive)
        wrapped = Pretended(inner)
        _HOLDERS.setdefault(name, 0)
        _HOLDERS[name] += 1
        weakref.finalize(wrapped, self._dropped, name, storage.nbytes())
        return wrapped

    def _dropped(self, name: int, size: int) -> None:
        _HOLDERS[name] -= 1
        if _HOLDERS[name] == 0 and name in self._storages:
            del _HOLDERS[name]
            self._storages.discard(name)
            self.alive -= size


_HOLDERS: dict[int, int] = {}
"""How many tensors on the device share a storage."""


def _inner(leaf):
    return leaf.inner if isinstance(leaf, Pretended) else leaf


def _is_view(func) -> bool:
    return any(result.alias_info is not None and not result.alias_info.is_write for result in func._schema.returns)
