"""Worlds so small that every image, mask and imputation can be enumerated: there the identity of leakage is exact.

A world is a list of cases; an imputer lists the images it may produce; `removal` combines them into the joint
distribution of class, mask and imputed image. Both examples of the paper are here: an object on the left or right,
whose faithful map reveals the class by the position of the mask; and a map that points at nothing but starts at the top
for one class and at the bottom for the other.
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
"""True = removed"""
DiscreteImputer = Callable[[Image, Mask], Mapping[Image, float]]
"""From an image whose removed pixels read `HIDDEN`, and its mask, to possible images with their probabilities."""

HIDDEN = -1
"""A value that no pixel has."""


class Case(NamedTuple):
    """One possible image of a world, with its class and map."""

    probability: float
    label: int
    image: Image
    relevance: tuple[float, ...]
    """the map of the image, higher = more relevant"""


def removal(world: Sequence[Case], order: str, removed: int, imputer: DiscreteImputer) -> Identity:
    """The identity of removing `removed` pixels per image in `order`, "morf" or "lerf", and imputing them."""
    joint: dict[tuple[int, Mask, Image], float] = defaultdict(float)
    for case in world:
        for mask, mask_probability in _masks(case.relevance, order, removed):
            for image, image_probability in imputer(_hidden(case.image, mask), mask).items():
                joint[case.label, mask, image] += case.probability * mask_probability * image_probability
    axes = [sorted(set(values)) for values in zip(*joint, strict=True)]
    table = np.zeros([len(values) for values in axes])
    for outcome, probability in joint.items():
        table[tuple(values.index(value) for values, value in zip(axes, outcome, strict=True))] = probability
    return Identity(table)


def _masks(relevance: Sequence[float], order: str, removed: int) -> Iterator[tuple[Mask, float]]:
    """The masks of `removed` pixels with their probabilities; all ways to break ties are equally likely."""
    if order not in ("morf", "lerf"):
        raise InputError(f"order={order!r}: choose 'morf' or 'lerf'")
    if not 0 <= removed <= len(relevance):
        raise RangeError(f"removed={removed}: an image of this world has {len(relevance)} pixels")
    ranked = sorted(relevance, reverse=order == "morf")
    threshold = ranked[removed - 1] if removed else None
    tied = [pixel for pixel, value in enumerate(relevance) if value == threshold]
    first = [pixel for pixel, value in enumerate(relevance) if value in ranked[:removed] and value != threshold]
    choices = list(combinations(tied, removed - len(first)))
    for choice in choices:
        pixels = {*first, *choice}
        yield tuple(pixel in pixels for pixel in range(len(relevance))), 1 / len(choices)


def _hidden(image: Image, mask: Mask) -> Image:
    return tuple(HIDDEN if removed else value for value, removed in zip(image, mask, strict=True))


def reserved(image: Image, mask: Mask) -> dict[Image, float]:
    """Invertible imputation: removed pixels get a value that no other pixel has, much like a fixed color."""
    return {image: 1.0}


def background(values: Sequence[int]) -> DiscreteImputer:
    """Draw removed pixels uniformly from the `values` of an ordinary pixel.

    Minimally revealing where ordinary pixels are distributed like that: given the class, the image does not reveal the
    mask.
    """

    def impute(image: Image, mask: Mask) -> dict[Image, float]:
        options = [tuple(values) if removed else (value,) for value, removed in zip(image, mask, strict=True)]
        images = list(product(*options))
        return {imputed: 1 / len(images) for imputed in images}

    return impute


def left_right(visible: float = 1.0) -> list[Case]:
    """An object of value 2 on the left (class 0) or right (class 1), on a background of random 0s and 1s.

    The map is faithful: it marks the object. With probability 1 − `visible` there is no object and the map is constant.
    """
    _check_probability("visible", visible)
    cases = []
    for label, texture in product((0, 1), product((0, 1), repeat=2)):
        with_object = tuple(2 if side == label else value for side, value in enumerate(texture))
        marked = tuple(float(side == label) for side in (0, 1))
        cases.append(Case(visible / 8, label, with_object, marked))
        cases.append(Case((1 - visible) / 8, label, texture, (0.0, 0.0)))
    return [case for case in cases if case.probability > 0]


def top_bottom(match: float = 0.75, leak: float = 1.0) -> list[Case]:
    """Two pixels, top and bottom, each equal to the class with probability `match`; a map that points at nothing.

    The map calls the top irrelevant for class 0 and the bottom for class 1 with probability `leak`, and the reverse
    otherwise: at 1 the mask determines the class, at 0.5 it is independent of it.
    """
    _check_probability("match", match)
    _check_probability("leak", leak)
    cases = []
    for label, image, leaks in product((0, 1), product((0, 1), repeat=2), (True, False)):
        pixels = np.prod([match if value == label else 1 - match for value in image])
        relevant = 1 - label if leaks else label
        relevance = tuple(float(row == relevant) for row in (0, 1))
        cases.append(Case(float(pixels) * (leak if leaks else 1 - leak) / 2, label, image, relevance))
    return [case for case in cases if case.probability > 0]


def _check_probability(name: str, value: float) -> None:
    if not 0 <= value <= 1:
        raise RangeError(f"{name}={value}: a probability lies in [0, 1]")
