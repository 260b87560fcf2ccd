"""Augmentation of train images, applied after imputation: (images, ids, key) -> images, random per image by key."""

import torch
from torch.nn.functional import pad

from roadworthy.core.random import Key
from roadworthy.core.types import Ids, Images

SHIFT = 4
"""In pixels; the usual augmentation for CIFAR-10 (arXiv:1512.03385, 4.2)."""


def flipped(images: Images, ids: Ids, key: Key) -> Images:
    """Flip each image horizontally with probability ½."""
    mirrored = key.fold("flip").uniform(ids, (1, 1, 1)) < 0.5
    return torch.where(mirrored, images.flip(-1), images)


def shifted_and_flipped(images: Images, ids: Ids, key: Key) -> Images:
    """Shift each image by up to `SHIFT` pixels along both axes, padded with zeros, and flip it with probability ½."""
    height, width = images.shape[-2:]
    offsets = (key.fold("shift").uniform(ids, (2,)) * (2 * SHIFT + 1)).long()
    rows = offsets[:, :1] + torch.arange(height)
    columns = offsets[:, 1:] + torch.arange(width)
    padded = pad(flipped(images, ids, key), (SHIFT,) * 4)
    return padded[torch.arange(len(images))[:, None, None], :, rows[:, :, None], columns[:, None, :]].movedim(-1, 1)
