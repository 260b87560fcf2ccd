"""CIFAR-10 in its official binary format: records of one label byte and 3072 bytes of red, green and blue planes."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray

from roadworthy.core.errors import DataError, InputError, RangeError
from roadworthy.core.types import Batch, Ids
from roadworthy.datasets.subsets import rechunked, spans

_SHAPE = (3, 32, 32)
_RECORD = 1 + 3 * 32 * 32
_RECORDS = 10_000
"""in each official file"""


@final
@dataclass(frozen=True)
class CIFAR10:
    """The images in `root/cifar-10-batches-bin` (or in `root` itself); ids are indices in the official split.

    The files are memory-mapped, so memory use is constant. `train_batches` selects files of the train split.
    """

    root: Path | str
    split: str = "test"
    train_batches: tuple[int, ...] = (1, 2, 3, 4, 5)

    def __post_init__(self) -> None:
        object.__setattr__(self, "train_batches", tuple(self.train_batches))
        if self.split not in ("train", "test"):
            raise InputError(f"split {self.split!r}: CIFAR-10 has 'train' and 'test'")
        numbers = set(self.train_batches)
        if not numbers or not numbers <= {1, 2, 3, 4, 5} or len(numbers) < len(self.train_batches):
            raise RangeError(f"train_batches {self.train_batches}: give distinct numbers from 1 to 5")
        for path, _ in self._files:
            _check_length(path)
        _ = self.classes  # fail now, not in the middle of a run

    @cached_property
    def classes(self) -> tuple[str, ...]:
        path = self._folder / "batches.meta.txt"
        _check_exists(path)
        names = tuple(path.read_text(encoding="utf-8").split())
        if len(names) != 10:
            raise DataError(f"{path} names {len(names)} classes, expected 10: {_advice(path)}")
        return names

    @property
    def ids(self) -> Ids:
        return torch.cat([torch.arange(start, start + _RECORDS) for _, start in self._files])

    def __len__(self) -> int:
        return _RECORDS * len(self._files)

    def batches(self, size: int) -> Iterator[Batch]:
        return rechunked((batch for file in self._files for batch in _file_batches(*file, size)), size)

    @property
    def _folder(self) -> Path:
        root = Path(self.root).expanduser()
        return root if (root / "test_batch.bin").is_file() else root / "cifar-10-batches-bin"

    @property
    def _files(self) -> list[tuple[Path, int]]:
        """Each file with the id of its first record."""
        if self.split == "test":
            return [(self._folder / "test_batch.bin", 0)]
        return [(self._folder / f"data_batch_{k}.bin", (k - 1) * _RECORDS) for k in self.train_batches]


def _file_batches(path: Path, start: int, size: int) -> Iterator[Batch]:
    _check_length(path)
    records = np.memmap(path, dtype=np.uint8, mode="r", shape=(_RECORDS, _RECORD))
    for span in spans(_RECORDS, size):
        yield Batch(
            torch.arange(start + span.start, start + span.stop),
            torch.from_numpy(records[span, 1:].reshape(-1, *_SHAPE).astype(np.float32)).div_(255),
            torch.from_numpy(_labels(records[span, 0], path, span.start)),
        )


def _labels(bytes_: NDArray[np.uint8], path: Path, start: int) -> NDArray[np.int64]:
    if bytes_.max() > 9:
        record = int(np.argmax(bytes_ > 9))
        raise DataError(f"{path}: record {start + record} has label {bytes_[record]}, expected 0 to 9: {_advice(path)}")
    return bytes_.astype(np.int64)


def _check_length(path: Path) -> None:
    _check_exists(path)
    length, expected = path.stat().st_size, _RECORDS * _RECORD
    if length != expected:
        state = "truncated" if length < expected else "too long"
        raise DataError(f"{path} is {state}: {length} bytes, expected {expected}: {_advice(path)}")


def _check_exists(path: Path) -> None:
    if not path.is_file():
        present = sorted(int(file.stem[-1]) for file in path.parent.glob("data_batch_[1-5].bin"))
        subset = (
            f" (or use train_batches={tuple(present)}, which exist)" if present and "data_batch" in path.name else ""
        )
        raise DataError(f"{path} is missing: {_advice(path)}{subset}")


def _advice(path: Path) -> str:
    return f"get it with `roadworthy data download cifar10 --root {path.parent.parent}`"
