"""A planted object, and something brighter that the model does not see."""

import torch

from roadworthy.audit.truth.scene import (
    BLUE,
    CELL,
    CELLS,
    RED,
    Scene,
    choices,
    in_quadrant,
    linear,
    places,
    planes,
    quadrants,
    sizes,
    world,
)
from roadworthy.audit.truth.world import World
from roadworthy.core.random import Key
from roadworthy.core.types import Ids, Labels

_OBJECT, _DISTRACTOR = 0.3, 0.4
_GAIN = 3 / (_OBJECT * CELL**2)


def distractor(seed: int = 0, images: int = 100, train: int = 400) -> World:
    """A red object in the quadrant that is the class, and a brighter blue one anywhere, which the model ignores.

    Four classes. Each object fills a cell; the quadrant of the blue one is independent of the class. A logit is the sum
    of the red channel in its quadrant. Images differ in brightness, so one fill color suits none of them.

    Margin: the sum of red in the quadrant of the class, minus a third of that in the others. Red is planted anywhere
    with probability 1/16, so its mean is m = 1/16 of the object's red. Ideal removal of a pixel of the object takes
    15/16 of its red; another pixel of the quadrant gains m, which favors the class, so it contributes −m; one in
    another quadrant contributes m/3.

    Order: exact > blurred > noisy > very noisy > constant > distractor > inverted. The blue object lies in the quadrant
    of the class with probability 1/4, and never on the red one: on average its pixels contribute −m/4 + 3/4·m/3 = 0,
    less than the average pixel, which contributes 1/256 of the whole margin. Removing them first is a little worse than
    removing pixels at random.
    """
    return _made("distractor", seed, images, train, 0.25)


def shortcut(seed: int = 0, images: int = 100, train: int = 400) -> World:
    """As `distractor`, but nine of ten blue objects lie in the quadrant of the class. The model ignores them.

    The data have a shortcut that the model does not take. The truth is about the model: blue pixels contribute
    0.9·(−m) + 0.1·m/3 = −0.87 m on average, even less than in `distractor`, so the order is the same. A model that is
    retrained on these images may take the shortcut.
    """
    return _made("shortcut", seed, images, train, 0.9)


def _made(name: str, seed: int, images: int, train: int, agreement: float) -> World:
    ids, key = sizes(seed, images, train), Key(seed).fold(name)
    labels = ids % 4
    seen, unseen = _positions(ids, labels, agreement, key)
    background = planes(ids, key, 0.15, 0.45)
    red, blue = _OBJECT * places(seen), _DISTRACTOR * places(unseen)
    own = quadrants()[labels]
    scene = Scene(
        images=background + red[:, None] * RED + blue[:, None] * BLUE,
        labels=labels,
        expected=background + (_OBJECT * RED + _DISTRACTOR * BLUE) / CELLS,
        exact=_GAIN * (own - (1 - own) / 3) * (red - _OBJECT / CELLS),
        misleading=blue,
    )
    order = "exact > blurred > noisy > very noisy > constant > distractor > inverted"
    patches = "exact > noisy > very noisy = blurred > constant > distractor > inverted"
    return world(name, scene, linear(_GAIN * quadrants()[:, None] * RED), "distractor", order, patches, train, key)


def _positions(ids: Ids, labels: Labels, agreement: float, key: Key) -> tuple[torch.Tensor, torch.Tensor]:
    """Cells of the red and of the blue object, which differ; in one quadrant with probability `agreement`."""
    red = choices(key.fold("red"), ids, 4)
    together = key.fold("together").uniform(ids, (1,))[:, 0] < agreement
    quadrant = torch.where(together, labels, (labels + 1 + choices(key.fold("quadrant"), ids, 3)) % 4)
    beside, anywhere = (red + 1 + choices(key.fold("beside"), ids, 3)) % 4, choices(key.fold("anywhere"), ids, 4)
    return in_quadrant(labels, red), in_quadrant(quadrant, torch.where(together, beside, anywhere))
