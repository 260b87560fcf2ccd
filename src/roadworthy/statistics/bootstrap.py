"""The paired bootstrap: every draw takes the same images, and the same seeds, for all methods."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from roadworthy.statistics.intervals import CONFIDENCE, Array, Variance

DRAWS = 2000
MANY_SEEDS = 10
"""With fewer seeds only images are resampled (two seeds have just three resamples); Student's t covers the seeds."""
_CHUNK = 4_000_000
"""weights held in memory at a time: 32 MB"""
_KEPT = 200_000_000
"""bytes of draws that are kept for the next table of the same images"""


def resampled_means(runs: Array, draws: int = DRAWS, seed: int = 0) -> Array:
    """Means `(draws, rows)` of values `(rows, seeds, images)`, resampling images (and seeds, if many).

    A draw is a vector of counts, so one matrix product averages all rows.
    """
    if runs.shape[1] < MANY_SEEDS:
        runs = runs.mean(axis=1, keepdims=True)
    rows, seeds, images = runs.shape
    columns = np.ascontiguousarray(runs.transpose(2, 1, 0).reshape(images, seeds * rows))
    if seeds == 1:
        kept = _image_draws if draws * images <= _KEPT else _image_draws.__wrapped__
        return np.concatenate([counts.astype(np.float64) @ columns / images for counts in kept(draws, images, seed)])
    generator, parts = np.random.default_rng(seed), []
    for count in _chunks(draws, images):
        per_seed = (_counts(generator, count, images) @ columns / images).reshape(count, seeds, rows)
        weights = _counts(generator, count, seeds) / seeds
        parts.append(np.einsum("dsr,ds->dr", per_seed, weights))
    return np.concatenate(parts)


def _chunks(draws: int, images: int) -> list[int]:
    """Draws in parts that fit into memory."""
    step = max(1, _CHUNK // images)
    return [min(step, draws - start) for start in range(0, draws, step)]


@lru_cache(maxsize=1)
def _image_draws(draws: int, images: int, seed: int) -> tuple[NDArray[np.uint8], ...]:
    """How often each image is drawn. All tables of an experiment take the same draws, so they are made once.

    Counts of 256 and more are impossible: they have a probability below 1/256!.
    """
    generator = np.random.default_rng(seed)
    return tuple(_counts(generator, count, images).astype(np.uint8) for count in _chunks(draws, images))


def _counts(generator: np.random.Generator, draws: int, size: int) -> Array:
    """How often each of `size` elements is drawn, `(draws, size)`."""
    if size == 1:
        return np.ones((draws, 1))
    drawn = generator.integers(size, size=(draws, size))
    drawn += size * np.arange(draws)[:, None]
    return np.bincount(drawn.ravel(), minlength=draws * size).reshape(draws, size).astype(np.float64)


def standardized(draws: Array, center: Array) -> Array:
    """Centered draws divided by their standard deviation; 0 where it is 0."""
    spread = draws.std(axis=0)
    return np.asarray(np.divide(draws - center, spread, out=np.zeros_like(draws), where=spread > 0))


def expanded(draws: Array, center: Array, variance: Variance, confidence: float = CONFIDENCE) -> Array:
    """Draws stretched to the width of Student's interval: the expanded percentile bootstrap (Hesterberg 2015).

    Plain percentiles are too narrow: they divide by n instead of n − 1, have normal tails, and ignore the variance
    between seeds that are too few to resample. The draws give the shape, `variance` the width.
    """
    tail = (1 - confidence) / 2
    stretch = variance.half_width(tail) / stats.norm.isf(tail)
    return np.asarray(center + standardized(draws, center) * stretch)
