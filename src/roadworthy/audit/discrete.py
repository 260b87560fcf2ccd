"""Worlds so small that every image, mask and fill can be listed: there the identity of leakage is exact.

A world is its list of cases; a fill lists the images that it may make of one; `removal` puts them together as the joint
distribution of class, mask and imputed image. The paper's two examples are here: an object left or right, whose honest
map gives the class away by the place of its hole, and the map that starts at the top for one class, at the bottom for
the other, which points at nothing.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations, product
from typing import NamedTuple

import numpy as np

from roadworthy.audit.identity import Identity
from roadworthy.core.errors import InputError, RangeError

Image = tuple[int, ...]
"""one value per pixel"""
Mask = tuple[bool, ...]
"""True = gone"""
Fill = Callable[[Image, Mask], Mapping[Image, float]]
"""What may become of an image whose removed pixels are hidden (they read `HIDDEN`): image to probability."""

HIDDEN = -1
"""The value that no pixel has."""


class Case(NamedTuple):
    """One thing that may happen in a world."""

    probability: float
    label: int
    image: Image
    scores: tuple[float, ...]
    """the map that explains the image, higher = more relevant"""


def removal(world: Sequence[Case], order: str, removed: int, fill: Fill) -> Identity:
    """The identity of removing so many pixels per image, "morf" or "lerf", and filling the holes."""
    joint: dict[tuple[int, Mask, Image], float] = defaultdict(float)
    for case in world:
        for mask, share in _masks(case.scores, order, removed):
            for image, chance in fill(_hidden(case.image, mask), mask).items():
                joint[case.label, mask, image] += case.probability * share * chance
    axes = [sorted(set(values)) for values in zip(*joint, strict=True)]
    table = np.zeros([len(values) for values in axes])
    for place, probability in joint.items():
        table[tuple(values.index(value) for values, value in zip(axes, place, strict=True))] = probability
    return Identity(table)


def _masks(scores: Sequence[float], order: str, removed: int) -> Iterator[tuple[Mask, float]]:
    """The masks of `removed` pixels with their probabilities: among ties every choice is equally likely."""
    if order not in ("morf", "lerf"):
        raise InputError(f"order={order!r}: choose 'morf' or 'lerf'")
    if not 0 <= removed <= len(scores):
        raise RangeError(f"removed={removed}: an image of this world has {len(scores)} pixels")
    ranked = sorted(scores, reverse=order == "morf")
    edge = ranked[removed - 1] if removed else None
    tied = [pixel for pixel, score in enumerate(scores) if score == edge]
    first = [pixel for pixel, score in enumerate(scores) if score in ranked[:removed] and score != edge]
    choices = list(combinations(tied, removed - len(first)))
    for chosen in choices:
        gone = {*first, *chosen}
        yield tuple(pixel in gone for pixel in range(len(scores))), 1 / len(choices)


def _hidden(image: Image, mask: Mask) -> Image:
    return tuple(HIDDEN if gone else value for value, gone in zip(image, mask, strict=True))


def reserved(image: Image, mask: Mask) -> dict[Image, float]:
    """Invertible imputation: removed pixels show a value of their own, as a fixed color nearly does."""
    return {image: 1.0}


def background(values: Sequence[int]) -> Fill:
    """Removed pixels are drawn from what an ordinary pixel may be, each value equally likely: nothing shows a hole.

    Minimally revealing where an ordinary pixel is like that: given the class, the mask cannot be told from the image.
    """

    def fill(image: Image, mask: Mask) -> dict[Image, float]:
        options = [tuple(values) if gone else (value,) for value, gone in zip(image, mask, strict=True)]
        images = list(product(*options))
        return {one: 1 / len(images) for one in images}

    return fill


def left_right(seen: float = 1.0) -> list[Case]:
    """An object, of value 2, stands left (class 0) or right (class 1) of a background that is 0 or 1 by chance.

    The map is honest: it marks the object. With probability 1 − `seen` there is no object and the map says nothing.
    """
    _check_share("seen", seen)
    cases = []
    for label, texture in product((0, 1), product((0, 1), repeat=2)):
        with_object = tuple(2 if side == label else value for side, value in enumerate(texture))
        marked = tuple(float(side == label) for side in (0, 1))
        cases.append(Case(seen / 8, label, with_object, marked))
        cases.append(Case((1 - seen) / 8, label, texture, (0.0, 0.0)))
    return [case for case in cases if case.probability > 0]


def top_bottom(told: float = 0.75, leak: float = 1.0) -> list[Case]:
    """Two pixels, top and bottom, each equal to the class with probability `told`; a map that points at nothing.

    It calls the top irrelevant for class 0 and the bottom for class 1, with probability `leak`, else the other way
    round: at 1 the mask is the class, at 0.5 it knows nothing of it.
    """
    _check_share("told", told)
    _check_share("leak", leak)
    cases = []
    for label, image, leaks in product((0, 1), product((0, 1), repeat=2), (True, False)):
        pixels = np.prod([told if value == label else 1 - told for value in image])
        spared = 1 - label if leaks else label
        scores = tuple(float(row == spared) for row in (0, 1))
        cases.append(Case(float(pixels) * (leak if leaks else 1 - leak) / 2, label, image, scores))
    return [case for case in cases if case.probability > 0]


def _check_share(name: str, value: float) -> None:
    if not 0 <= value <= 1:
        raise RangeError(f"{name}={value}: a probability lies in [0, 1]")
