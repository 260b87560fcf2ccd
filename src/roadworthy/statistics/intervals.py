"""Intervals of means over images and seeds, both of which are samples of what might have been.

Images and seeds are crossed: every seed (a model trained anew) sees every image. The variance of a mean has a part
from each. There are many images but few seeds, so each part has Student's t with its own degrees of freedom, and the
two half-widths are added as squares.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Array = NDArray[np.float64]
LEVEL = 0.95
_DUST = 1e-24
"""a variance below this is rounding: the values are all the same"""


class Variance(NamedTuple):
    """Of a mean, split by what it would take to shrink it: more images or more seeds."""

    images: Array
    seeds: Array
    """0 for one seed: how much seeds differ is then unknown"""
    freedom: tuple[int, int]
    """degrees of freedom of the two parts"""

    @property
    def error(self) -> Array:
        """The standard error."""
        return np.sqrt(self.images + self.seeds)

    def half_width(self, tail: float | Array) -> Array:
        """Of an interval that leaves out `tail` on either side."""
        by_images, by_seeds = (stats.t.isf(tail, freedom) for freedom in self.freedom)
        return np.asarray(np.sqrt(by_images**2 * self.images + by_seeds**2 * self.seeds))

    def p(self, difference: Array) -> Array:
        """Two-sided, against 0: twice the tail at which the interval begins to leave 0 out; NaN without variance."""
        with np.errstate(divide="ignore", invalid="ignore"):
            alone = 2 * stats.t.sf(np.abs(difference / self.error), self.freedom[0])
        if not np.any(self.seeds > 0):
            return np.asarray(np.where(self.error > 0, alone, np.nan))
        low, high = np.full(np.shape(difference), -300.0), np.zeros(np.shape(difference))  # exponents of 10
        for _ in range(50):
            middle = (low + high) / 2
            inside = self.half_width(10**middle / 2) > np.abs(difference)
            low, high = np.where(inside, middle, low), np.where(inside, high, middle)
        return np.asarray(np.where(self.error > 0, 10**high, np.nan))


def variance_of_mean(runs: Array) -> Variance:
    """Of means of values `(..., seeds, images)`; NaN from one image.

    value = mean + seed effect + image effect + rest; the rest is counted in both parts, on the safe side.
    """
    seeds, images = runs.shape[-2:]
    freedom = (max(images - 1, 1), max(seeds - 1, 1))
    if images < 2:
        nothing = np.full(runs.shape[:-2], np.nan)
        return Variance(nothing, nothing, freedom)
    by_images = _dusted(runs.mean(axis=-2).var(axis=-1, ddof=1) / images)
    if seeds == 1:
        return Variance(by_images, np.zeros_like(by_images), freedom)
    return Variance(by_images, _dusted(runs.mean(axis=-1).var(axis=-1, ddof=1) / seeds), freedom)


def _dusted(variance: Array) -> Array:
    return np.where(variance < _DUST, 0.0, variance)


def mean_interval(runs: Array, level: float = LEVEL) -> tuple[float, float]:
    """Student's interval of the mean of values `(images,)` or `(seeds, images)`.

    >>> low, high = mean_interval(np.array([1.0, 2.0, 3.0]))  # 2 ∓ 4.303 · 1/sqrt(3)
    >>> round(low, 2), round(high, 2)
    (-0.48, 4.48)
    """
    half = variance_of_mean(np.atleast_2d(runs)).half_width((1 - level) / 2)
    return float(runs.mean() - half), float(runs.mean() + half)


def bounded_interval(runs: Array, bounds: tuple[float, float], level: float = LEVEL) -> tuple[float, float]:
    """Student's interval cut to what is possible; where all images agree, that of `unanimous`."""
    low, high = mean_interval(runs, level)
    if low == high:
        return unanimous(float(runs.mean()), runs.shape[-1], bounds, 1 - level)
    return float(np.clip(low, *bounds)), float(np.clip(high, *bounds))


def unanimous(value: float, images: int, bounds: tuple[float, float], error: float) -> tuple[float, float]:
    """The interval of a mean when every image says the same: never of width 0.

    If a share q of all images said otherwise, n images would agree with probability (1 − q)^n; the largest q that this
    leaves at error/2 is 1 − (error/2)^(1/n), and those images may lie at either bound (for a share: Clopper-Pearson).

    >>> [round(end, 3) for end in unanimous(1.0, 100, (0.0, 1.0), 0.05)]
    [0.964, 1.0]
    """
    others = 1 - (error / 2) ** (1 / images)
    return value - others * (value - bounds[0]), value + others * (bounds[1] - value)


def share_interval(hits: Array, level: float = LEVEL) -> tuple[float, float]:
    """Wilson's interval of an accuracy, from hits `(seeds, images)`: it has a width at 0 and 100 % too.

    With several seeds it is Wilson's at the number of images that would give the same width without them.
    """
    share, count = float(hits.mean()), float(hits.shape[-1])
    quantile = float(stats.norm.ppf((1 + level) / 2))
    if len(hits) > 1 and 0 < share < 1:
        half = float(variance_of_mean(hits).half_width((1 - level) / 2))
        count = min(share * (1 - share) * (quantile / half) ** 2, float(hits.size)) if half > 0 else count
    z2 = quantile**2
    center, half = share + z2 / (2 * count), np.sqrt(z2 * (share * (1 - share) / count + z2 / (4 * count**2)))
    return float((center - half) / (1 + z2 / count)), float((center + half) / (1 + z2 / count))
