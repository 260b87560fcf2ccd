"""Reading a data set block by block."""

from collections.abc import Iterator, Sequence
from itertools import islice

import torch

from roadworthy.core.errors import DataError
from roadworthy.core.types import Batch, Dataset
from roadworthy.datasets.subsets import First, RandomAccess, picked


class BlockReader:
    """Reads blocks of rows. A data set that can only be streamed is streamed on from the end of the last block.

    The last block is kept, because all methods of an experiment are evaluated on a block in turn.
    """

    def __init__(self, data: Dataset):
        self.data = data
        self._rows: Sequence[int] = ()
        self._batch: Batch | None = None
        self._stream: Iterator[Batch] = iter(())
        self._position = -1
        self._size = 0

    def read(self, rows: Sequence[int]) -> Batch:
        """The images at `rows`, which ascend."""
        if self._batch is None or list(rows) != list(self._rows):
            self._batch, self._rows = self._fetch(rows), rows
        return self._batch

    def _fetch(self, rows: Sequence[int]) -> Batch:
        source = self.data.data if isinstance(self.data, First) else self.data
        if isinstance(source, RandomAccess):
            return source.at(list(rows))
        if rows[-1] - rows[0] + 1 == len(rows):
            return self._next(rows[0], len(rows))
        return _joined(picked(self.data, rows).batches(len(rows)))

    def _next(self, start: int, count: int) -> Batch:
        """Go on with the stream if it is there and cut into blocks of this size, but for the last."""
        same_size = count == self._size or (count < self._size and start + count == len(self.data))
        if start != self._position or not same_size:
            if start % count:
                return _joined(picked(self.data, range(start, start + count)).batches(count))
            self._stream, self._size = islice(self.data.batches(count), start // count, None), count
        self._position = start + count
        batch = next(self._stream, None)
        if batch is None:
            raise DataError(f"the data set has {len(self.data)} images by its length, but ended before image {start}")
        return batch


def _joined(batches: Iterator[Batch]) -> Batch:
    parts = list(batches)
    if len(parts) == 1:
        return parts[0]
    ids, images, labels = (torch.cat([getattr(part, name) for part in parts]) for name in ("ids", "images", "labels"))
    return Batch(ids, images, labels)
