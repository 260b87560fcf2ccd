"""The class is what is missing."""

import torch
from torch import nn

from roadworthy.audit.truth.scene import CELL, CELLS, RED_GREEN, Scene, linear, places, planes, reading, sizes, world
from roadworthy.audit.truth.world import World
from roadworthy.core.random import Key

_CLASSES = 8
_HUE = 0.15
_GAIN = 4 / (_HUE * CELL**2)


def absence(seed: int = 0, images: int = 100, train: int = 400) -> World:
    """Eight cells, seven of which have a red mark. The class is the empty one.

    Eight classes. The cells are drawn once per world. A logit is minus the redness of its cell. Marks have the strength
    1 on average.

    Margin: the mean redness of the other seven cells, minus that of the empty one. A cell has a mark in 7 of 8 images,
    so its mean redness is 7/8. Ideal removal of the empty cell shows 7/8 of a mark there: it contributes 7/8. Removal
    of a mark takes 1/8 of it on average, and a mark counts one seventh: it contributes 1/56. The evidence is where
    nothing is.

    Order: exact > blurred > noisy > very noisy > constant > presence > inverted. `presence` shows the seven marks. With
    N = 16 cells, removing the marks first and the others in random order puts a mark 9/32 of all pixels earlier than
    the average, and the others 7/32 later, so the quality is proportional to 9/32·7/56 − 7/32·7/8 = −5/32, less than 0.
    """
    ids, key = sizes(seed, images, train), Key(seed).fold("absence")
    labels = ids % _CLASSES
    cells = places(torch.from_numpy(key.fold("cells").permutation(0, CELLS)[:_CLASSES]))
    empty = nn.functional.one_hot(labels, _CLASSES).float()
    strength = 1 + 0.25 * key.fold("strength").normal(ids, (_CLASSES,)).clamp(-2, 2)
    marks = _HUE * torch.einsum("nk,khw->nhw", strength * (1 - empty), cells)
    mean = _HUE * (1 - 1 / _CLASSES) * cells.sum(dim=0)
    own = torch.einsum("nk,khw->nhw", empty, cells)
    others = cells.sum(dim=0) - own
    background = planes(ids, key, 0.42, 0.58)
    scene = Scene(
        images=background + marks[:, None] * RED_GREEN,
        labels=labels,
        expected=background + mean * RED_GREEN,
        exact=_GAIN * (others / (_CLASSES - 1) - own) * (marks - mean),
        misleading=marks,
    )
    model = linear(-_GAIN * cells[:, None] * reading(RED_GREEN))
    order = "exact > blurred > noisy > very noisy > constant > presence > inverted"
    return world("absence", scene, model, "presence", order, order, train, key)
