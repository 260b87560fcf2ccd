"""Images in memory or in a memory map."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, final

import torch

from roadworthy.core.types import UNLABELED, Batch
from roadworthy.datasets.checks import (
    as_pixels,
    check_ids,
    check_kind,
    check_labels,
    check_pixels,
    class_indices,
    integers,
)
from roadworthy.datasets.subsets import spans

_CHUNK = 2**22
"""values checked at a time: 16 MB"""


@final
@dataclass(frozen=True, eq=False)
class Arrays:
    """A numpy array or tensor of images `(n, c, h, w)`, floats in [0, 1] or bytes, copied batch by batch.

    `labels` are class indices or names among `classes`; without them every image is `UNLABELED`. Without `ids` the ids
    are positions.
    """

    images: Any = field(repr=False)
    labels: Any = field(default=None, repr=False)
    ids: Any = field(default=None, repr=False)
    classes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        count = len(check_kind(self.images))
        object.__setattr__(self, "classes", tuple(self.classes))
        object.__setattr__(self, "labels", self._checked_labels(count))
        object.__setattr__(self, "ids", _checked_ids(self.ids, count))
        for span in spans(count, max(1, _CHUNK // math.prod(self.images.shape[1:]))):
            check_pixels(as_pixels(self.images[span]), span.start)

    def __len__(self) -> int:
        return len(self.images)

    def batches(self, size: int) -> Iterator[Batch]:
        for span in spans(len(self), size):
            yield Batch(self.ids[span].clone(), as_pixels(self.images[span]), self.labels[span].clone())

    def at(self, rows: Sequence[int]) -> Batch:
        indices = torch.tensor(rows)
        return Batch(self.ids[indices], as_pixels(self.images[indices.numpy()]), self.labels[indices])

    def _checked_labels(self, count: int) -> torch.Tensor:
        if self.labels is None:
            return torch.full((count,), UNLABELED)
        return check_labels(class_indices(self.labels, count, self.classes), self.classes)


def checked_batch(images: Any, ids: Any = None) -> Batch:
    """One unlabeled batch of all images, with the checks of `Arrays` but copied once instead of twice."""
    count = len(check_kind(images))
    return Batch(_checked_ids(ids, count), check_pixels(as_pixels(images)), torch.full((count,), UNLABELED))


def _checked_ids(ids: Any, count: int) -> torch.Tensor:
    return torch.arange(count) if ids is None else check_ids(integers("ids", ids, count))
