"""Changes to train images after they were filled: (images, ids, key) -> images, keyed per image like all randomness."""

import torch
from torch.nn.functional import pad

from roadworthy.core.random import Key
from roadworthy.core.types import Ids, Images

SHIFT = 4
"""Pixels: what networks for CIFAR-10 are usually trained with (arXiv:1512.03385, 4.2)."""


def flipped(images: Images, ids: Ids, key: Key) -> Images:
    """Half of the images mirrored, left to right."""
    mirrored = key.fold("flip").uniform(ids, (1, 1, 1)) < 0.5
    return torch.where(mirrored, images.flip(-1), images)


def shifted_and_flipped(images: Images, ids: Ids, key: Key) -> Images:
    """Each image moved by up to 4 pixels in both directions, zeros coming in, and half of them mirrored."""
    height, width = images.shape[-2:]
    moves = (key.fold("shift").uniform(ids, (2,)) * (2 * SHIFT + 1)).long()
    rows = moves[:, :1] + torch.arange(height)
    columns = moves[:, 1:] + torch.arange(width)
    wide = pad(flipped(images, ids, key), (SHIFT,) * 4)
    return wide[torch.arange(len(images))[:, None, None], :, rows[:, :, None], columns[:, None, :]].movedim(-1, 1)
