"""A data set that must give the same images on every pass, for every reader."""

from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from roadworthy.core.errors import DataError
from roadworthy.core.types import Batch, Dataset, Ids
from roadworthy.datasets.checks import check_data, check_tensors
from roadworthy.datasets.subsets import First, RandomAccess


def verified(data: Dataset) -> "Verified":
    """`data`, compared on every reading with the first; as readable as it was. The first images are read at once."""
    source = data.data if isinstance(data, First) else data
    checked = VerifiedRandomAccess(data) if isinstance(source, RandomAccess) else Verified(data)
    check_data(checked)
    return checked


class Verified:
    """Keeps a checksum per image, a small part of the cost of one forward pass."""

    def __init__(self, data: Dataset):
        self.data = data
        self._sums = torch.zeros(len(data), dtype=torch.int64)
        self._known = torch.zeros(len(data), dtype=torch.bool)

    @property
    def classes(self) -> tuple[str, ...]:
        return self.data.classes

    @property
    def ids(self) -> Ids:
        return self.data.ids

    def __len__(self) -> int:
        return len(self.data)

    def batches(self, size: int) -> Iterator[Batch]:
        start = 0
        for batch in self.data.batches(size):
            if start + len(batch.ids) > len(self):
                raise DataError(f"the data set gave more than its {len(self)} images: its length is not what it says")
            self._check(batch, torch.arange(start, start + len(batch.ids)))
            yield batch
            start += len(batch.ids)

    def _check(self, batch: Batch, rows: Tensor) -> None:
        check_tensors(batch)
        sums = checksums(batch)
        changed = self._known[rows] & (self._sums[rows] != sums)
        if changed.any():
            row = int(changed.nonzero()[0])
            raise DataError(
                f"image {int(batch.ids[row])} is not what it was when it was first read: pixels, label or id differ (a "
                "random transform, a sampler that shuffles, a file that changed); every pass must give the same"
            )
        self._sums[rows], self._known[rows] = sums, True


class VerifiedRandomAccess(Verified):
    def at(self, rows: Sequence[int]) -> Batch:
        source = self.data.data if isinstance(self.data, First) else self.data
        batch: Batch = source.at(rows)  # type: ignore[attr-defined]
        self._check(batch, torch.tensor(list(rows)))
        return batch


def checksums(batch: Batch) -> Tensor:
    """int64 `(n,)`, of ids, labels and pixels with their places: a flipped image has another. Exact, in any batch."""
    pixels = batch.images.detach().to("cpu", torch.float32).contiguous().flatten(1).view(torch.int32).long()
    places = _weights(pixels.shape[1] + 2)
    return (pixels * places[2:]).sum(dim=1) + batch.labels.cpu().long() * places[0] + batch.ids.cpu().long() * places[1]


@lru_cache(maxsize=4)
def _weights(count: int) -> Tensor:
    """Odd numbers, so that no change of a single pixel is lost when the product wraps around."""
    return torch.from_numpy(np.random.default_rng(0).integers(2**62, size=count) * 2 + 1)
