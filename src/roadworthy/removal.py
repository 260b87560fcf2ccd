"""Which pixels are gone at a fraction: counted, never thresholded."""

import math
from collections.abc import Sequence

import numpy as np

from roadworthy.errors import RangeError
from roadworthy.types import Ranks, Removed

FRACTIONS: tuple[float, ...] = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
"""The even grid: it holds the paper's fractions and their complements."""

PAPER_FRACTIONS: tuple[float, ...] = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 0.9)


def removed_at(ranks: Ranks, fraction: float) -> Removed:
    """The first floor(fraction·h·w + ½) pixels to leave."""
    return ranks < count(fraction, ranks.shape[-2] * ranks.shape[-1])


def count(fraction: float, pixels: int) -> int:
    """
    >>> [count(fraction, 784) for fraction in (0, 0.1, 0.5, 1)]
    [0, 78, 392, 784]
    """
    return math.floor(fraction * pixels + 0.5)


def checked_fractions(fractions: Sequence[float]) -> tuple[float, ...]:
    """Sorted, each once, each a share of pixels in [0, 1]."""
    values = [float(fraction) for fraction in np.atleast_1d(np.asarray(fractions, dtype=float))]
    if not values:
        raise RangeError("fractions is empty: give shares of removed pixels such as rw.FRACTIONS")
    for value in values:
        if not 0 <= value <= 1:
            raise RangeError(f"fraction {value}: the share of removed pixels lies in [0, 1] (10 % is 0.1)")
    return tuple(sorted(set(values)))
