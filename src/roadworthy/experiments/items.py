"""Items of work: what a store records, each named by the hash of what it means and of what it needs.

A spec holds strings, numbers, lists and tables only, with fingerprints of data and weights in place of their paths:
changed data or weights are new work, another folder is not.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from roadworthy.core.types import Batch, Dataset
from roadworthy.models.normalized import Normalized
from roadworthy.statistics.early_stopping import order_of_taking

Arrays = Mapping[str, NDArray[Any]]
Spec = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Block:
    """Some images of a split, by their rows, which ascend."""

    split: str
    index: int
    rows: tuple[int, ...]
    fingerprint: str
    """of ids, labels and pixels"""


@dataclass(frozen=True, eq=False)
class Item:
    kind: str
    spec: Spec
    label: Spec
    """names of method, imputer and so on: shown to people and looked up in the experiment, not part of the id"""
    needs: tuple["Item", ...] = ()
    block: Block | None = None

    @cached_property
    def id(self) -> str:
        return item_id(self.kind, self.spec, self.block.fingerprint if self.block else "", [n.id for n in self.needs])


def item_id(kind: str, spec: Spec, block: str, needs: Sequence[str]) -> str:
    text = canonical({"kind": kind, "spec": spec, "block": block, "needs": list(needs)})
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def canonical(value: Any) -> str:
    """
    >>> canonical({"b": 1, "a": [0.5, "é"]})
    '{"a":[0.5,"é"],"b":1}'
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


# ── blocks ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def sequential_rows(images: int, size: int) -> list[tuple[int, ...]]:
    return [tuple(range(start, min(start + size, images))) for start in range(0, images, size)]


def growing_rows(images: int, first: int, seed: int) -> list[tuple[int, ...]]:
    """Blocks for early stopping: images in an order fixed by `seed`, a quarter more after each look.

    At first half a batch more, so that small blocks do not slow down the models.

    >>> [len(rows) for rows in growing_rows(1000, 64, seed=0)]
    [64, 32, 32, 32, 40, 50, 62, 78, 97, 121, 152, 190, 50]
    """
    order = order_of_taking(images, seed)
    blocks, stop = [], 0
    while stop < images:
        start, stop = stop, min(max(stop + max(1, first // 2, stop // 4), first), images)
        blocks.append(tuple(np.sort(order[start:stop]).tolist()))
    return blocks


def default_block_size(image: torch.Size, batch_size: int, map_batch_size: int) -> int:
    """Of a run directory: enough images for one file, few enough for memory (maps of some 32 MB).

    >>> default_block_size(torch.Size((3, 32, 32)), 64, 64), default_block_size(torch.Size((3, 224, 224)), 64, 64)
    (1024, 128)
    """
    most = min(1024, (32 << 20) // (4 * int(image[-2] * image[-1])))
    step = block_step(batch_size, map_batch_size)
    return max(1, most // step) * step


def block_step(batch_size: int, map_batch_size: int) -> int:
    """The smallest block of complete batches of both sizes; where that is large, of complete map batches only.

    >>> block_step(64, 64), block_step(32, 64), block_step(125, 64)
    (64, 64, 128)
    """
    both = int(np.lcm(batch_size, map_batch_size))
    return both if both <= 4 * max(batch_size, map_batch_size) else -(-batch_size // map_batch_size) * map_batch_size


# ── fingerprints ─────────────────────────────────────────────────────────────────────────────────────────────────────


def fingerprint_blocks(data: Dataset, blocks: Sequence[Sequence[int]]) -> list[str]:
    """A fingerprint per block of rows, in one pass over the data."""
    digests = [digest for batch in data.batches(256) for digest in _image_digests(batch)]
    return [combined(digests[row] for row in rows) for rows in blocks]


def fingerprint_block(batch: Batch) -> str:
    """Of a block of these images."""
    return combined(_image_digests(batch))


def _image_digests(batch: Batch) -> Iterator[str]:
    for row in range(len(batch)):
        digest = hashlib.sha256(str(tuple(batch.images.shape[1:])).encode())
        for tensor in (batch.ids[row], batch.labels[row], batch.images[row]):
            digest.update(tensor.contiguous().numpy().tobytes())
        yield digest.hexdigest()


def combined(fingerprints: Iterable[str]) -> str:
    """
    >>> combined(["a", "b"]) == combined(["a", "b"]) != combined(["b", "a"])
    True
    """
    return hashlib.sha256("\n".join(fingerprints).encode()).hexdigest()


def fingerprint_path(path: Path) -> str:
    """Of a file, or of all files in a folder (.zarr) and their names."""
    if not path.is_dir():
        return hashlib.sha256(path.read_bytes()).hexdigest()
    files = sorted(file for file in path.rglob("*") if file.is_file())
    lines = [f"{file.relative_to(path).as_posix()} {fingerprint_path(file)}" for file in files]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def fingerprint_model(model: Normalized) -> str:
    """Of every weight and buffer, and of the normalization."""
    digest = hashlib.sha256()
    tensors = {**model.state_dict(), "mean": model.mean, "std": model.std}
    for name in sorted(tensors):
        tensor = tensors[name].detach().cpu().contiguous()
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().tobytes() if tensor.numel() else b"")
    return digest.hexdigest()
