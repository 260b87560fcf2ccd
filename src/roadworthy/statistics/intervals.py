"""Confidence intervals of means over images and seeds.

Images and seeds are crossed random effects: every seed (a newly trained model) predicts every image, so the variance of
a mean has a part from each. There are many images but few seeds, so each part gets Student's t with its own degrees of
freedom, and the two half-widths are added in quadrature.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Array = NDArray[np.float64]
CONFIDENCE = 0.95
_ROUNDING = 1e-24
"""a smaller variance is rounding error: all values are equal"""


class Variance(NamedTuple):
    """The variance of a mean, split into what more images and what more seeds would reduce."""

    images: Array
    seeds: Array
    """0 for one seed: the variance between seeds is then unknown"""
    dof: tuple[int, int]
    """degrees of freedom of the two parts"""

    @property
    def error(self) -> Array:
        """The standard error."""
        return np.sqrt(self.images + self.seeds)

    def half_width(self, tail: float | Array) -> Array:
        """Half the width of the interval that leaves out probability `tail` on each side."""
        by_images, by_seeds = (_t_quantile(tail, dof) for dof in self.dof)
        # hypot: at a tiny tail with few seeds the square alone would overflow.
        return np.asarray(np.hypot(by_images * np.sqrt(self.images), by_seeds * np.sqrt(self.seeds)))

    def p(self, difference: Array) -> Array:
        """Two-sided p-value against 0: twice the tail at which the interval starts to exclude 0; NaN if not defined."""
        with np.errstate(divide="ignore", invalid="ignore"):
            images_only = 2 * stats.t.sf(np.abs(difference / self.error), self.dof[0])
        if not np.any(self.seeds > 0):
            return np.asarray(np.where(self.error > 0, images_only, np.nan))
        low, high = np.full(np.shape(difference), -300.0), np.zeros(np.shape(difference))  # exponents of 10
        for _ in range(50):
            middle = (low + high) / 2
            inside = self.half_width(10**middle / 2) > np.abs(difference)
            low, high = np.where(inside, middle, low), np.where(inside, high, middle)
        return np.asarray(np.where(self.error > 0, 10**high, np.nan))


def _t_quantile(tail: float | Array, dof: int) -> Array:
    return _kept_quantile(float(tail), dof) if np.ndim(tail) == 0 else np.asarray(stats.t.isf(tail, dof))


@lru_cache(maxsize=256)
def _kept_quantile(tail: float, dof: int) -> Array:
    """A table asks thousands of times for the same one."""
    return np.asarray(stats.t.isf(tail, dof))


@lru_cache(maxsize=256)
def _normal_quantile(probability: float) -> float:
    return float(stats.norm.ppf(probability))


def variance_of_mean(runs: Array) -> Variance:
    """Variance of the means of values `(..., seeds, images)`; NaN for a single image.

    Model: value = mean + seed effect + image effect + residual. The residual is counted in both parts, which is
    conservative.
    """
    seeds, images = runs.shape[-2:]
    dof = (max(images - 1, 1), max(seeds - 1, 1))
    if images < 2:
        undefined = np.full(runs.shape[:-2], np.nan)
        return Variance(undefined, undefined, dof)
    by_images = _without_rounding(runs.mean(axis=-2).var(axis=-1, ddof=1) / images)
    if seeds == 1:
        return Variance(by_images, np.zeros_like(by_images), dof)
    return Variance(by_images, _without_rounding(runs.mean(axis=-1).var(axis=-1, ddof=1) / seeds), dof)


def _without_rounding(variance: Array) -> Array:
    return np.where(variance < _ROUNDING, 0.0, variance)


def mean_interval(runs: Array, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Student's interval of the mean of values `(images,)` or `(seeds, images)`.

    >>> low, high = mean_interval(np.array([1.0, 2.0, 3.0]))  # 2 ∓ 4.303 · 1/sqrt(3)
    >>> round(low, 2), round(high, 2)
    (-0.48, 4.48)
    """
    half = variance_of_mean(np.atleast_2d(runs)).half_width((1 - confidence) / 2)
    return float(runs.mean() - half), float(runs.mean() + half)


def bounded_interval(runs: Array, bounds: tuple[float, float], confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Student's interval clipped to `bounds`; `unanimous_interval` where all images have the same value."""
    low, high = mean_interval(runs, confidence)
    if low == high:
        return unanimous_interval(float(runs.mean()), runs.shape[-1], bounds, 1 - confidence)
    return float(np.clip(low, *bounds)), float(np.clip(high, *bounds))


def unanimous_interval(value: float, images: int, bounds: tuple[float, float], error: float) -> tuple[float, float]:
    """Interval of a mean when every image has the same value. Its width is never 0.

    If a proportion q of all images had another value, n images would agree with probability (1 − q)^n. The largest q
    with (1 − q)^n ≥ error/2 is 1 − (error/2)^(1/n), and those images may lie at either bound. For a proportion this is
    the Clopper-Pearson interval.

    >>> [round(end, 3) for end in unanimous_interval(1.0, 100, (0.0, 1.0), 0.05)]
    [0.964, 1.0]
    """
    others = 1 - (error / 2) ** (1 / images)
    return value - others * (value - bounds[0]), value + others * (bounds[1] - value)


def share_interval(hits: Array, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Wilson interval of an accuracy, from hits `(seeds, images)`. Its width is not 0 at 0 % or 100 %.

    With several seeds, it is the Wilson interval at the effective number of images: the number that would give the same
    width from images alone.
    """
    share, count = float(hits.mean()), float(hits.shape[-1])
    quantile = _normal_quantile((1 + confidence) / 2)
    if len(hits) > 1 and 0 < share < 1:
        half = float(variance_of_mean(hits).half_width((1 - confidence) / 2))
        count = min(share * (1 - share) * (quantile / half) ** 2, float(hits.size)) if half > 0 else count
    z2 = quantile**2
    center, half = share + z2 / (2 * count), np.sqrt(z2 * (share * (1 - share) / count + z2 / (4 * count**2)))
    return float((center - half) / (1 + z2 / count)), float((center + half) / (1 + z2 / count))
