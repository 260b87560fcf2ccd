"""Simple imputers. They reveal the shape of the mask (class information leakage; the paper, section 4).

All of them work even if every pixel is removed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Self, final

import numpy as np
import torch
from scipy.ndimage import gaussian_filter, gaussian_filter1d
from torch import Tensor

from roadworthy.core.device import CPU, moved, on_device
from roadworthy.core.errors import RangeError, ShapeError
from roadworthy.core.random import Key
from roadworthy.core.types import Batch, Dataset, Images, Removed


@on_device
@final
@dataclass(frozen=True)
class Constant:
    """A constant value, for all channels or per channel."""

    value: float | tuple[float, ...] = 0.0

    def __call__(self, batch: Batch, removed: Removed, key: Key) -> Images:
        return _imputed(batch, removed, _per_channel(self.value, batch.images))


@on_device
@final
@dataclass(frozen=True)
class DatasetMean:
    """Fixed-value imputation as in the paper: the mean of the dataset, per channel."""

    mean: tuple[float, ...]

    @classmethod
    def of(cls, data: Dataset) -> Self:
        """The mean of `data`, computed in batches."""
        total, pixels = torch.zeros(1, dtype=torch.float64), 0
        for batch in data.batches(256):
            total = total + batch.images.sum(dim=(0, 2, 3), dtype=torch.float64)
            pixels += len(batch) * batch.images[0, 0].numel()
        return cls(tuple((total / pixels).tolist()))

    def __call__(self, batch: Batch, removed: Removed, key: Key) -> Images:
        return _imputed(batch, removed, _per_channel(self.mean, batch.images))


@on_device
@final
@dataclass(frozen=True)
class ImageMean:
    """The mean of the image per channel, removed pixels included, as in the authors' code."""

    def __call__(self, batch: Batch, removed: Removed, key: Key) -> Images:
        images = batch.images
        if images.device != CPU:
            return _imputed(batch, removed, images.double().mean(dim=(2, 3), keepdim=True).to(images.dtype))
        # One image at a time: summing a whole batch may round differently.
        means = [image.double().mean(dim=(1, 2), keepdim=True) for image in images]
        return _imputed(batch, removed, torch.stack(means).to(images.dtype))


@on_device
@final
@dataclass(frozen=True)
class Blur:
    """A Gaussian blur of the image, a common baseline; the removed content stays partly visible.

    `sigma` is in pixels.
    """

    sigma: float = 4.0

    def __post_init__(self) -> None:
        if self.sigma <= 0:
            raise RangeError(f"Blur(sigma={self.sigma}): must be a positive number of pixels")

    def __call__(self, batch: Batch, removed: Removed, key: Key) -> Images:
        images = batch.images
        if images.device != CPU:
            rows, columns = (_blurring(size, self.sigma, images.device) for size in images.shape[2:])
            return _imputed(batch, removed, (rows @ images.double() @ columns.mT).to(images.dtype))
        blurred = gaussian_filter(images.numpy(), self.sigma, axes=(2, 3), mode="nearest")
        return _imputed(batch, removed, torch.from_numpy(blurred))


@lru_cache(maxsize=8)
def _blurring(size: int, sigma: float, device: torch.device) -> Tensor:
    """The blur along one side as a matrix; float64, because a GPU may round products of float32 to TF32."""
    return moved(torch.from_numpy(gaussian_filter1d(np.eye(size), sigma, axis=0, mode="nearest")), device)


def _imputed(batch: Batch, removed: Removed, values: Tensor) -> Images:
    return torch.where(removed[:, None].to(batch.images.device), values, batch.images)


def _per_channel(value: float | Sequence[float], images: Images) -> Tensor:
    entries = [value] if isinstance(value, int | float) else value
    values = torch.cat([images.new_full((1, 1, 1), entry) for entry in entries])  # made there, not moved there
    if len(values) not in (1, images.shape[1]):
        raise ShapeError(
            f"{len(values)} fill values for images with {images.shape[1]} channels: give one value, or one per channel"
        )
    return values
