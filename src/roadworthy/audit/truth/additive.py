"""Many small contributions that add up."""

import torch

from roadworthy.attributions.controls import Edges
from roadworthy.audit.truth.scene import CELL, CELLS, RED_GREEN, Scene, linear, pixels, planes, reading, sizes, world
from roadworthy.audit.truth.world import World
from roadworthy.core.random import Key
from roadworthy.core.types import Batch, Images, Maps

_HUE = 0.08
_GAIN = 1.5 / (_HUE * CELL**2 * CELLS**0.5)


def additive(seed: int = 0, images: int = 100, train: int = 400) -> World:
    """Every cell has a hue between red and green, and the model adds them up, each with its own weight.

    Two classes. The weights w are drawn once per world. The hue h of a cell is random, and shifted by the class towards
    the sign of its weight. Gray clutter, which the model does not see, makes edges.

    Margin = ± Σ w·h over pixels, + for the second class: a pixel contributes ± w·h. As the shift has the other sign in
    the other class, h is 0 on average over images, and ideal removal of a pixel takes away its contribution and nothing
    else.

    Order: exact > blurred > noisy > very noisy > constant = edges > inverted. `edges` are those of the gray background,
    which is drawn independently of hues and class: like a constant map it knows nothing, so its quality is 0.
    """
    ids, key = sizes(seed, images, train), Key(seed).fold("additive")
    labels = ids % 2
    signs = (2.0 * labels - 1)[:, None]
    weights = key.fold("weights").normal([0], (CELLS,))[0]
    hues = _HUE * (signs * weights.sign() / 2 + key.fold("hues").normal(ids, (CELLS,)).clamp(-2, 2))
    background = planes(ids, key, 0.45, 0.55) + _clutter(ids, key)
    direction = _GAIN * pixels(weights) * reading(RED_GREEN)
    planted = pixels(hues)[:, None] * RED_GREEN
    scene = Scene(
        images=background + planted,
        labels=labels,
        expected=background,
        exact=signs[..., None] * (planted * direction).sum(dim=1),
        misleading=_edges(background),
    )
    model = linear(torch.stack([-direction, direction]) / 2)
    order = "exact > blurred > noisy > very noisy > constant = edges > inverted"
    patches = "exact > blurred = noisy > very noisy > constant = edges > inverted"
    return world("additive", scene, model, "edges", order, patches, train, key)


def _clutter(ids: torch.Tensor, key: Key) -> Images:
    return pixels(0.05 * key.fold("clutter").normal(ids, (CELLS,)).clamp(-2, 2))[:, None]


def _edges(background: Images) -> Maps:
    """Of the mean of the channels, so that no hue is left."""
    gray = Batch(torch.arange(len(background)), background.mean(dim=1, keepdim=True), torch.zeros(len(background)))
    return Edges()(None, gray, Key(0))  # type: ignore[arg-type]  # edges do not look at the model
