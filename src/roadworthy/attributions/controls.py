"""Controls: maps that ignore the model, and copies of a method that add no information to it.

A useful method beats them. They are ranked with the methods and marked.
"""

from dataclasses import dataclass
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.ndimage import correlate1d, gaussian_filter

from roadworthy.core.device import CPU
from roadworthy.core.errors import RangeError
from roadworthy.core.random import Key
from roadworthy.core.types import Attribution, Batch, Maps, Model


@final
@dataclass(frozen=True)
class Random:
    """Uniform noise, drawn per image by key: a value for each pixel, or for each unit, whatever its size."""

    def __call__(self, model: Model, batch: Batch, key: Key) -> Maps:
        height, width = batch.images.shape[-2:]
        values = key.fold("random").uniform(batch.ids, (height * width,))
        if batch.units is None:
            return values.reshape(-1, height, width)
        units = batch.units.to(CPU)
        return units.painted(values[:, : units.sizes.shape[1]])


@final
@dataclass(frozen=True)
class Edges:
    """Sobel gradient magnitude of the image, summed over channels."""

    def __call__(self, model: Model, batch: Batch, key: Key) -> Maps:
        images = batch.images.cpu().numpy()
        return torch.from_numpy(np.hypot(_slope(images, 2, 3), _slope(images, 3, 2)).sum(axis=1))


def _slope(images: NDArray[np.float32], along: int, across: int) -> NDArray[np.float32]:
    """Sobel derivative along one axis, smoothed across the other (scipy's `sobel` would smooth over the batch too)."""
    derivative = correlate1d(images, [-1, 0, 1], axis=along, mode="nearest")
    return np.asarray(correlate1d(derivative, [1, 2, 1], axis=across, mode="nearest"))


@final
@dataclass(frozen=True)
class Center:
    """A Gaussian at the center of the image, where photographers place their objects."""

    width: float = 0.25
    """standard deviation relative to the image's side"""

    def __call__(self, model: Model, batch: Batch, key: Key) -> Maps:
        height, width = batch.images.shape[-2:]
        down, right = (((torch.arange(size) + 0.5) / size - 0.5) / self.width for size in (height, width))
        gaussian = torch.exp(-(down[:, None] ** 2 + right[None, :] ** 2) / 2)
        return gaussian.expand(len(batch), height, width)


@final
@dataclass(frozen=True)
class Blurred:
    """A blurred copy of another method's maps: it adds no information, so it should not win (arXiv:2304.13836)."""

    source: Attribution
    sigma: float = 2.0
    """in pixels"""

    def __post_init__(self) -> None:
        if self.sigma <= 0:
            raise RangeError(f"Blurred(sigma={self.sigma}): must be a positive number of pixels")

    def finish(self, computed: Any, batch: Batch) -> Maps:
        return blurred(computed, self.sigma)

    def __call__(self, model: Model, batch: Batch, key: Key) -> Maps:
        return self.finish(self.source(model, batch, key), batch)


def blurred(maps: Maps, sigma: float = Blurred.sigma) -> Maps:
    """Blur the two spatial axes of maps `(n, h, w)` or `(n, c, h, w)`, each image and channel on its own."""
    return torch.from_numpy(gaussian_filter(maps.cpu().numpy(), sigma, axes=(-2, -1), mode="nearest"))


def sharpened(maps: Maps, sigma: float) -> Maps:
    """What blurring removes, added once more (unsharp masking)."""
    cpu = maps.cpu()
    return 2 * cpu - blurred(cpu, sigma)


@final
@dataclass(frozen=True)
class Inverted:
    """The negated map: its MoRF curve is the LeRF curve of the map, so `compare` derives it at no cost."""

    source: Attribution

    def finish(self, computed: Any, batch: Batch) -> Maps:
        inverted: Maps = -computed
        return inverted

    def __call__(self, model: Model, batch: Batch, key: Key) -> Maps:
        return self.finish(self.source(model, batch, key), batch)
