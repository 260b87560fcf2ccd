"""Where a sweep computes: on the model's device. Random numbers are drawn on the CPU and moved there once."""

from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import Any, TypeVar

import torch
from torch import Tensor

from roadworthy.core.random import Key

CPU = torch.device("cpu")
_WITHOUT_FLOAT64 = ("mps",)
_KEPT_BYTES, _KEPT_BYTES_ON_CPU = 512 << 20, 128 << 20
"""Random numbers that are kept for the next methods, orders and fractions of the same images, per device."""

Part = TypeVar("Part")
Item = TypeVar("Item")
Prepared = TypeVar("Prepared")


def on_device(part: Part) -> Part:
    """Mark an order or imputer that computes on the device of its input and returns its result there."""
    part.on_device = True  # type: ignore[attr-defined]
    return part


def stays_on_device(part: Any) -> bool:
    """Whether a part takes tensors on any device; parts without the mark, such as a user's, get them on the CPU."""
    return bool(getattr(part, "on_device", False))


def sweep_device(device: torch.device) -> torch.device:
    """Where images are ranked and imputed for a model on `device`: there, or on the CPU if it knows no float64."""
    return CPU if device.type in _WITHOUT_FLOAT64 else device


def moved(tensor: Tensor, device: torch.device) -> Tensor:
    """On `device`; to CUDA from pinned memory, so that nobody waits for the copy."""
    if device.type == "cuda" and tensor.device.type == "cpu":
        tensor = tensor.pin_memory()
    return tensor.to(device, non_blocking=True)


def ahead(prepare: Callable[[Item], Prepared], items: Iterable[Item], device: torch.device) -> Iterator[Prepared]:
    """Each item prepared: for another device than the CPU in a thread, while the item before it is in use."""
    if device == CPU:
        yield from map(prepare, items)
        return
    stream = torch.cuda.current_stream(device) if device.type == "cuda" else None

    def work(item: Item) -> Prepared:
        with torch.cuda.stream(stream):  # that of the caller, so that its kernels come after our copies
            return prepare(item)

    futures: deque[Future[Prepared]] = deque()
    with ThreadPoolExecutor(1, thread_name_prefix="roadworthy-ahead") as pool:
        for item in items:
            futures.append(pool.submit(work, item))
            if len(futures) > 1:
                yield futures.popleft().result()
        while futures:
            yield futures.popleft().result()


def normal(key: Key, ids: tuple[int, ...], shape: tuple[int, ...], device: torch.device = CPU) -> Tensor:
    """`key.normal(ids, shape)` on `device`, kept."""
    return _kept(("normal", key, ids, shape, device), lambda: key.normal(ids, shape), device)


def shuffles(key: Key, ids: tuple[int, ...], size: int, device: torch.device) -> Tensor:
    """int64 `(n, size)`: the permutation of each id on `device`, kept."""
    return _kept(("shuffle", key, ids, size, device), lambda: key.permutations(ids, size), device)


_RECENT: dict[torch.device, OrderedDict[Any, Tensor]] = {}
_LOCK = Lock()


def _kept(name: tuple[Any, ...], draw: Callable[[], Tensor], device: torch.device) -> Tensor:
    with _LOCK:
        recent = _RECENT.setdefault(device, OrderedDict())
        if name in recent:
            recent.move_to_end(name)
            return recent[name]
    tensor = moved(draw(), device)
    with _LOCK:
        recent[name] = tensor
        limit = _KEPT_BYTES_ON_CPU if device == CPU else _KEPT_BYTES
        while len(recent) > 1 and sum(kept.nbytes for kept in recent.values()) > limit:
            recent.popitem(last=False)
    return tensor
