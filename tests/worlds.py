"""Tiny problems with known answers, shared by tests and docs."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from roadworthy.core.random import Key


class World(NamedTuple):
    model: nn.Module
    images: Tensor
    labels: Tensor
    truth: Tensor
    """the true relevance, by construction `(n, h, w)`"""


class OnePixel(nn.Module):
    """The class is whether one pixel is bright; nothing else matters."""

    def forward(self, images: Tensor) -> Tensor:
        bright = (images[:, :, 2, 3].mean(dim=1) - 0.5) * 20
        return torch.stack([-bright, bright], dim=1)


def one_pixel(n: int = 40, size: int = 8, channels: int = 3) -> World:
    images = Key(1).fold("one pixel").uniform(range(n), (channels, size, size)) * 0.4 + 0.3
    labels = torch.arange(n) % 2
    images[:, :, 2, 3] = torch.where(labels == 1, 0.9, 0.1)[:, None]
    truth = torch.zeros(n, size, size)
    truth[:, 2, 3] = 1
    return World(OnePixel(), images, labels, truth)


class Quadrants(nn.Module):
    """Logits are the mean brightness of the four quadrants, so gradients are known."""

    def forward(self, images: Tensor) -> Tensor:
        half = images.shape[-1] // 2
        gray = images.mean(dim=1)
        parts = [gray[:, :half, :half], gray[:, :half, half:], gray[:, half:, :half], gray[:, half:, half:]]
        return 40 * torch.stack([part.mean(dim=(1, 2)) for part in parts], dim=1)


def quadrants(n: int = 64, size: int = 12, channels: int = 3) -> World:
    """Each image has one brighter disc in the quadrant of its class; the pixels of the disc are the truth."""
    images = Key(2).fold("quadrants").uniform(range(n), (channels, size, size)) * 0.3
    labels = torch.arange(n) % 4
    half = size // 2
    down, right = np.mgrid[:half, :half] - (half - 1) / 2
    disc = torch.from_numpy(np.hypot(down, right) <= half / 2.5)
    truth = torch.zeros(n, size, size)
    for row, label in enumerate(labels.tolist()):
        top, left = half * (label // 2), half * (label % 2)
        truth[row, top : top + half, left : left + half] = disc.float()
    images = images + 0.6 * truth[:, None]
    return World(Quadrants(), images, labels, truth)


class OnePatch(nn.Module):
    """The class is whether one patch, rows 4 to 7 and columns 8 to 11, is bright; nothing else matters."""

    def forward(self, images: Tensor) -> Tensor:
        bright = (images[:, :, 4:8, 8:12].mean(dim=(1, 2, 3)) - 0.5) * 20
        return torch.stack([-bright, bright], dim=1)


def one_patch(n: int = 40, size: int = 16, channels: int = 3) -> World:
    """The patch in row 1 and column 2 of a grid of 4×4 pixels is bright or dark."""
    images = Key(6).fold("one patch").uniform(range(n), (channels, size, size)) * 0.4 + 0.3
    labels = torch.arange(n) % 2
    images[:, :, 4:8, 8:12] += torch.where(labels == 1, 0.3, -0.3)[:, None, None, None]
    truth = torch.zeros(n, size, size)
    truth[:, 4:8, 8:12] = 1
    return World(OnePatch(), images, labels, truth)


class Sides(nn.Module):
    """The class is the brighter side."""

    def forward(self, images: Tensor) -> Tensor:
        half = images.shape[-1] // 2
        return 40 * torch.stack([images[..., :half].mean(dim=(1, 2, 3)), images[..., half:].mean(dim=(1, 2, 3))], dim=1)


def sides(n: int = 64, start: int = 0, size: int = 12) -> World:
    """A bright block on the left or right of a dim, tilted plane with slight noise; its side is the class.

    The truth is the block, 30 of 144 pixels. Without it, only the shape of the mask reveals the class. The mean of all
    images is brighter than any plane, so that mean imputation is visible; a plane is harmonic, so that linear
    imputation continues it, and with noise of the same 0.01 the mask is invisible if all of the block is removed.
    """
    ids, key = range(start, start + n), Key(4).fold("sides")
    down, right = torch.meshgrid(torch.linspace(-1, 1, size), torch.linspace(-1, 1, size), indexing="ij")
    tilt = key.fold("tilt").uniform(ids, (2, 1, 1)) * 0.1 - 0.05
    plane = 0.2 + tilt[:, 0] * down + tilt[:, 1] * right + 0.01 * key.fold("noise").normal(ids, (size, size))
    labels = torch.arange(n) % 2
    places = key.fold("place").uniform(ids, (2,)) * torch.tensor([size - 5.0, size / 2 - 5])
    truth = torch.zeros(n, size, size)
    for row, (label, (top, left)) in enumerate(zip(labels.tolist(), places.long().tolist(), strict=True)):
        left += label * size // 2
        truth[row, top : top + 6, left : left + 5] = 1
    return World(Sides(), torch.where(truth == 1, 0.9, plane)[:, None], labels, truth)


def ramp(height: int, width: int) -> Tensor:
    """A plane: every inner pixel is exactly the weighted mean of its 8 neighbors."""
    down, right = torch.meshgrid(torch.linspace(0, 0.6, height), torch.linspace(0, 0.4, width), indexing="ij")
    return (down + right)[None, None]


def masks(n: int, height: int, width: int, fraction: float, seed: int = 3) -> Tensor:
    """Scattered random masks with exactly the given fraction."""
    field = Key(seed).fold("masks").uniform(range(n), (height * width,))
    count = int(fraction * height * width + 0.5)
    return (field.argsort(dim=1).argsort(dim=1) < count).reshape(n, height, width)
