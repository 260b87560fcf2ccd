"""200 images of CIFAR-10 that come with the package (see NOTICE): for demos and tests without a download."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import final

import numpy as np
from PIL import Image

from roadworthy.core.types import Batch, Ids
from roadworthy.datasets.arrays import Arrays

_FOLDER = Path(__file__).parent
_SIDE = 32
CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")


@final
@dataclass(frozen=True)
class CIFAR10Sample:
    """The first 20 CIFAR-10 test images of each class; ids are indices in the official test split."""

    @property
    def classes(self) -> tuple[str, ...]:
        return CLASSES

    @property
    def ids(self) -> Ids:
        return self._images.ids  # type: ignore[no-any-return]

    def __len__(self) -> int:
        return len(self._images)

    def batches(self, size: int) -> Iterator[Batch]:
        return self._images.batches(size)

    def at(self, rows: Sequence[int]) -> Batch:
        return self._images.at(rows)

    @cached_property
    def _images(self) -> Arrays:
        ids, labels = np.loadtxt(_FOLDER / "images.csv", np.int64, delimiter=",", skiprows=1, unpack=True)
        with Image.open(_FOLDER / "images.png") as sheet:
            pixels = np.asarray(sheet.convert("RGB"))
        rows, columns = (length // _SIDE for length in pixels.shape[:2])
        tiles = pixels.reshape(rows, _SIDE, columns, _SIDE, 3).transpose(0, 2, 4, 1, 3)
        return Arrays(tiles.reshape(-1, 3, _SIDE, _SIDE), labels, ids, CLASSES)
