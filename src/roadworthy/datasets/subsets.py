"""Subsets of datasets, and streams of batches of a given size."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol, final, runtime_checkable

import torch

from roadworthy.core.errors import RangeError
from roadworthy.core.types import Batch, Dataset, Ids


def check_size(size: int) -> None:
    if size < 1:
        raise RangeError(f"batch size {size}: must be at least 1")


def spans(count: int, size: int) -> Iterator[slice]:
    """Consecutive slices of `size` that cover `count`; the last may be shorter."""
    check_size(size)
    return (slice(start, min(start + size, count)) for start in range(0, count, size))


def rechunked(batches: Iterable[Batch], size: int) -> Iterator[Batch]:
    """The same images in the same order, in batches of `size`; holds one batch of either size in memory."""
    check_size(size)
    pending: list[Batch] = []
    for batch in batches:
        for span in _cuts(len(batch), size, head=sum(map(len, pending))):
            pending.append(batch[span])
            if sum(map(len, pending)) == size:
                yield _joined(pending)
                pending = []
    if pending:
        yield _joined(pending)


@final
@dataclass(frozen=True)
class First:
    """The first `count` images of `data`, or all if it has fewer; ids and order are kept."""

    data: Dataset
    count: int

    def __post_init__(self) -> None:
        if self.count < 1:
            raise RangeError(f"first {self.count} images: must be at least 1")

    @property
    def classes(self) -> tuple[str, ...]:
        return self.data.classes

    @property
    def ids(self) -> Ids:
        return self.data.ids[: self.count]

    def __len__(self) -> int:
        return min(self.count, len(self.data))

    def batches(self, size: int) -> Iterator[Batch]:
        check_size(size)
        remaining = len(self)
        for batch in self.data.batches(min(size, remaining)):
            yield batch[:remaining]
            remaining -= len(batch)
            if remaining <= 0:
                return


@runtime_checkable
class RandomAccess(Protocol):
    """A dataset that can read single images without those before them."""

    def at(self, rows: Sequence[int]) -> Batch:
        """The images at these positions, in this order."""


@final
@dataclass(frozen=True, eq=False)
class Picked:
    """The images of `data` at `rows`, which must be increasing; ids and order are kept."""

    data: Dataset
    rows: tuple[int, ...]

    def __post_init__(self) -> None:
        ascending = all(a < b for a, b in pairwise(self.rows))
        if not self.rows or not ascending or self.rows[0] < 0 or self.rows[-1] >= len(self.data):
            raise RangeError(f"rows: give at least one position, increasing, from 0 to {len(self.data) - 1}")

    @property
    def classes(self) -> tuple[str, ...]:
        return self.data.classes

    @property
    def ids(self) -> Ids:
        return self.data.ids[list(self.rows)]

    def __len__(self) -> int:
        return len(self.rows)

    def batches(self, size: int) -> Iterator[Batch]:
        if isinstance(self.data, RandomAccess):
            source = self.data
            return (source.at(self.rows[span]) for span in spans(len(self), size))
        return rechunked(self._streamed(size), size)

    def _streamed(self, size: int) -> Iterator[Batch]:
        """Read all images up to the last row and keep those at `rows`."""
        rows, start = torch.tensor(self.rows), 0
        for batch in self.data.batches(size):
            offsets = rows[(rows >= start) & (rows < start + len(batch))] - start
            if len(offsets):
                yield batch[offsets]
            start += len(batch)
            if start > self.rows[-1]:
                return


def picked(data: Dataset, rows: Sequence[int]) -> Dataset:
    """The images of `data` at `rows`; a `First` is unwrapped, so that its source can be read at random."""
    return Picked(data.data if isinstance(data, First) else data, tuple(rows))


def _cuts(count: int, size: int, head: int) -> Iterator[slice]:
    """Slices that cover `count`: the first completes `head` pending images to `size`, the others have `size`."""
    cut = min(size - head, count)
    yield slice(0, cut)
    for span in spans(count - cut, size):
        yield slice(cut + span.start, cut + span.stop)


def _joined(batches: list[Batch]) -> Batch:
    if len(batches) == 1:
        return batches[0]
    ids, images, labels = zip(*((batch.ids, batch.images, batch.labels) for batch in batches), strict=True)
    return Batch(torch.cat(ids), torch.cat(images), torch.cat(labels))
