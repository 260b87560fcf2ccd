"""A few images as they were evaluated: what the report and the figures show of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Pixels = NDArray[np.float32]
"""`(c, h, w)` in [0, 1]; values beyond are clipped for display"""


@dataclass(frozen=True, eq=False)
class Example:
    title: str
    image: Pixels
    fractions: tuple[float, ...]
    relevance: Mapping[str, Pixels]
    """method to its ranks as gray levels, white = most relevant; the leading method comes first"""
    imputed: Mapping[tuple[str, str, str], Sequence[Pixels]]
    """(method, order, imputer) to the imputed image at each fraction"""


class Answer(NamedTuple):
    """What the model predicted for one picture, as it was recorded."""

    name: str
    """of the predicted class"""
    correct: bool
    """it is the label; without labels, the class predicted before removal"""
    target: str
    """the class whose probability is known"""
    probability: float
    """of the target"""


class Removal(NamedTuple):
    """One method's pixels, removed in one order and imputed."""

    order: str
    fraction: float
    removed: NDArray[np.bool_]
    """`(h, w)`"""
    imputed: Pixels
    answer: Answer


@dataclass(frozen=True, eq=False)
class AnsweredImage:
    """An image, what some methods remove from it, and what the model answers each time."""

    title: str
    label: str
    """the name of its class"""
    image: Pixels
    answer: Answer
    """before removal"""
    imputer: str
    removals: Mapping[str, Sequence[Removal]]
    """by method; MoRF first"""


class Gallery(NamedTuple):
    """Images with answers, and how they were selected."""

    images: Sequence[AnsweredImage] = ()
    roles: Mapping[str, str] = MappingProxyType({})
    """the methods, the best first, and what each stands for"""
    lead: AnsweredImage | None = None
    """the image that the page opens with"""
    why_lead: str = ""
    why: str = ""
    """how the images were selected"""
