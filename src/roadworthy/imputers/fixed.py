"""The simple fills. They show the shape of the hole (`PAPER` calls it leakage); Noisy Linear hides it.

All of them have an answer when every pixel is removed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self, final

import torch
from scipy.ndimage import gaussian_filter
from torch import Tensor

from roadworthy.core.errors import RangeError, ShapeError
from roadworthy.core.random import Key
from roadworthy.core.types import Batch, Dataset, Images, Removed


@final
@dataclass(frozen=True)
class Constant:
    """One value for every removed pixel, for all channels or per channel."""

    value: float | tuple[float, ...] = 0.0

    def __call__(self, batch: Batch, removed: Removed, key: Key) -> Images:
        return _replaced(batch, removed, _per_channel(self.value, batch.images))


@final
@dataclass(frozen=True)
class DatasetMean:
    """The paper's fixed value imputation: the mean of the data set, per channel."""

    mean: tuple[float, ...]

    @classmethod
    def of(cls, data: Dataset) -> Self:
        """Measured on `data`, streamed."""
        total, pixels = torch.zeros(1, dtype=torch.float64), 0
        for batch in data.batches(256):
            total = total + batch.images.sum(dim=(0, 2, 3), dtype=torch.float64)
            pixels += len(batch) * batch.images[0, 0].numel()
        return cls(tuple((total / pixels).tolist()))

    def __call__(self, batch: Batch, removed: Removed, key: Key) -> Images:
        return _replaced(batch, removed, _per_channel(self.mean, batch.images))


@final
@dataclass(frozen=True)
class ImageMean:
    """The image's own mean per channel, removed pixels included, as in the authors' code."""

    def __call__(self, batch: Batch, removed: Removed, key: Key) -> Images:
        # One image at a time: a sum over a batch may round differently than the sum over one image.
        means = [image.double().mean(dim=(1, 2), keepdim=True) for image in batch.images]
        return _replaced(batch, removed, torch.stack(means).to(batch.images.dtype))


@final
@dataclass(frozen=True)
class Blur:
    """The blurred image shines through the holes: a common baseline that keeps what is removed half visible.

    `sigma` in pixels.
    """

    sigma: float = 4.0

    def __post_init__(self) -> None:
        if self.sigma <= 0:
            raise RangeError(f"Blur(sigma={self.sigma}): the width of the blur is a number of pixels above 0")

    def __call__(self, batch: Batch, removed: Removed, key: Key) -> Images:
        blurred = gaussian_filter(batch.images.cpu().numpy(), self.sigma, axes=(2, 3), mode="nearest")
        return _replaced(batch, removed, torch.from_numpy(blurred).to(batch.images.device))


def _replaced(batch: Batch, removed: Removed, fill: Tensor) -> Images:
    return torch.where(removed[:, None].to(batch.images.device), fill, batch.images)


def _per_channel(value: float | Sequence[float], images: Images) -> Tensor:
    values = torch.as_tensor(value, dtype=images.dtype, device=images.device).reshape(-1, 1, 1)
    if len(values) not in (1, images.shape[1]):
        raise ShapeError(f"a fill of {len(values)} channels does not fit images of {images.shape[1]} channels")
    return values
