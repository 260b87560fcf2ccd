"""Cutting streams of batches to size."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol, final, runtime_checkable

import torch

from roadworthy.core.errors import RangeError
from roadworthy.core.types import Batch, Dataset, Ids


def check_size(size: int) -> None:
    if size < 1:
        raise RangeError(f"batch size {size}: it must be at least 1")


def spans(count: int, size: int) -> Iterator[slice]:
    """Consecutive slices of `size` that cover `count`; the last may be shorter."""
    check_size(size)
    return (slice(start, min(start + size, count)) for start in range(0, count, size))


def rechunked(batches: Iterable[Batch], size: int) -> Iterator[Batch]:
    """The same images in the same order, in batches of `size`; holds one batch of each kind at a time."""
    check_size(size)
    waiting: list[Batch] = []
    for batch in batches:
        for span in _cuts(len(batch), size, head=sum(map(len, waiting))):
            waiting.append(batch[span])
            if sum(map(len, waiting)) == size:
                yield _joined(waiting)
                waiting = []
    if waiting:
        yield _joined(waiting)


@final
@dataclass(frozen=True)
class First:
    """The first `count` images of `data`, or all if it has fewer; ids and order are kept."""

    data: Dataset
    count: int

    def __post_init__(self) -> None:
        if self.count < 1:
            raise RangeError(f"first {self.count} images: ask for at least 1")

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
        left = len(self)
        for batch in self.data.batches(min(size, left)):
            yield batch[:left]
            left -= len(batch)
            if left <= 0:
                return


@runtime_checkable
class RandomAccess(Protocol):
    """A data set that can read a few images without reading all before them."""

    def at(self, rows: Sequence[int]) -> Batch: ...


@final
@dataclass(frozen=True, eq=False)
class Picked:
    """The images of `data` at `rows`, which ascend; ids and order are kept."""

    data: Dataset
    rows: tuple[int, ...]

    def __post_init__(self) -> None:
        ascending = all(a < b for a, b in pairwise(self.rows))
        if not self.rows or not ascending or self.rows[0] < 0 or self.rows[-1] >= len(self.data):
            raise RangeError(f"rows to pick: give ascending places from 0 to {len(self.data) - 1}, at least one")

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
        """All images pass by; those wanted are kept, until the last of them."""
        wanted, start = torch.tensor(self.rows), 0
        for batch in self.data.batches(size):
            here = wanted[(wanted >= start) & (wanted < start + len(batch))] - start
            if len(here):
                yield batch[here]
            start += len(batch)
            if start > self.rows[-1]:
                return


def picked(data: Dataset, rows: Sequence[int]) -> Dataset:
    """A `First` is looked through, so that what lies beneath can be read at random."""
    return Picked(data.data if isinstance(data, First) else data, tuple(rows))


def _cuts(count: int, size: int, head: int) -> Iterator[slice]:
    """Slices of `count` that fill up `head` waiting images to `size`, then go on in whole sizes."""
    cut = min(size - head, count)
    yield slice(0, cut)
    for span in spans(count - cut, size):
        yield slice(cut + span.start, cut + span.stop)


def _joined(batches: list[Batch]) -> Batch:
    if len(batches) == 1:
        return batches[0]
    ids, images, labels = zip(*((batch.ids, batch.images, batch.labels) for batch in batches), strict=True)
    return Batch(torch.cat(ids), torch.cat(images), torch.cat(labels))
