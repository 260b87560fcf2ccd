"""Draws of a rank correlation from what is known about the true accuracies behind two noisy rankings.

A bootstrap adds noise to ranks that are noisy already: ranks of close methods look less correlated in its draws than
they are in truth, so its intervals shrink at both ends. Here the noise is taken off first. The true merits of the
methods (a row per method, a column per fraction in each of the two settings) are modeled as draws from a normal
distribution; its spread, its correlation along the fractions and its correlation between the two settings are unknown
and get a prior over a grid. The prior of the correlation between settings is even in Fisher's z and gives weight to
exactly ±1. The noise of the measured merits, correlated because all share their images, is known from the images.
"""

from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, optimize

from roadworthy.statistics.intervals import Array

CORRELATIONS = np.concatenate([[-1.0], np.tanh(np.linspace(-2.75, 2.75, 12)), [1.0]])
CORRELATION_WEIGHTS = np.concatenate([[2.5], np.ones(12), [2.5]])
SPREADS = (0.3, 1.0, 3.0)
"""variance of the true merits, as a multiple of its estimate"""
LENGTHS = (0.1, 0.4, 1.5, 6.0)
"""fractions that lie so far apart have correlation 1/e"""
LEAST_SPREAD = 0.05
"""the smallest estimate of the spread, as a multiple of the noise: a spread of 0 would have no ranking"""
COMPONENTS = 20
"""distributions that are drawn from the grid"""


class Measured(NamedTuple):
    """Measured merits of methods in two settings at the fractions compared; higher is better in both."""

    merits: Array
    """`(methods, 2, fractions)`"""
    covariance: Array
    """of their noise: `(methods, 2, fractions, methods, 2, fractions)`"""
    noise: Array
    """draws of it: `(draws, methods, 2, fractions)`"""
    fractions: Array
    """of the first setting"""


class _Grid(NamedTuple):
    """Distributions of the true merits of a method: covariances over the columns, and square roots of them."""

    covariances: Array
    roots: Array


def drawn_correlations(measured: Measured, generator: np.random.Generator) -> Array:
    """Rank correlations of the two settings' true merits, averaged over the fractions, as many as there are draws."""
    draws, methods, _, fractions = measured.noise.shape
    size, columns = methods - 1, 2 * fractions
    contrasts = linalg.helmert(methods)  # differences between methods are all that ranks depend on
    covariance = measured.covariance.reshape(methods, columns, methods, columns)
    covariance = np.einsum("im,mcnd,jn->icjd", contrasts, covariance, contrasts, optimize=True)
    found = contrasts @ measured.merits.reshape(methods, columns)
    # Draws and merits in units of the spread: the jitter below is then tiny for all of them.
    scale = np.sqrt(np.mean(found**2)) or 1.0
    found, covariance = found / scale, covariance / scale**2
    noise = contrasts @ measured.noise.reshape(draws, methods, columns) / scale
    pooled = np.einsum("icid->cd", covariance) / size
    grid = _grid(found, pooled, measured.fractions)
    weights = _posterior_weights(grid.covariances, found, pooled)
    parts, start = [], 0
    for row, count in _picked(weights, draws, generator):
        prior = generator.normal(size=(count, size, columns)) @ grid.roots[row].T
        # A draw of prior and noise, corrected by what was measured: exact for normal distributions (Matheron's rule).
        surprise = (found - prior - noise[start : start + count]).reshape(count, size * columns)
        gain = _gain(grid.covariances[row], covariance, size)
        parts.append(prior + (surprise @ gain.T).reshape(count, size, columns))
        start += count
    latent = (contrasts.T @ np.concatenate(parts)).reshape(draws, methods, 2, fractions)
    return mean_rank_correlation(latent)


def extreme_is_plausible(measured: Measured, sign: int, tail: float) -> bool:
    """Whether merits in perfect agreement (`sign` 1) or disagreement (−1) could have given the measured ones.

    Asked only of correlations beyond one half. The nearest merits with a common order, by isotonic regression, must fit
    the measured ones as closely as noise lets expect, and with that noise correlate as little as measured, in more than
    `tail` of the draws.
    """
    toward = np.array([1, sign])[:, None]
    merits, noise = measured.merits * toward, measured.noise * toward
    correlation = mean_rank_correlation(merits)
    if correlation <= 0.5:
        return False
    order = np.argsort((merits / merits.std(axis=0)).sum(axis=1), axis=0)[:, None].repeat(2, axis=1)
    ordered = np.take_along_axis(merits, order, axis=0)
    fitted = np.apply_along_axis(lambda column: optimize.isotonic_regression(column).x, 0, ordered)
    nearest = np.empty_like(merits)
    np.put_along_axis(nearest, order, fitted, axis=0)
    deviations = noise - noise.mean(axis=1, keepdims=True)
    error = np.maximum(deviations.std(axis=0), 1e-9)
    largest = np.abs(deviations / error).max(axis=(1, 2, 3))
    fits = np.abs((merits - nearest) / error).max() <= np.quantile(largest, 1 - tail)
    return bool(fits and np.mean(mean_rank_correlation(nearest + noise) <= correlation + 1e-9) > tail)


def mean_rank_correlation(merits: Array) -> Array:
    """Spearman's coefficient of merits `(..., methods, 2, fractions)`, averaged over the fractions that rank."""
    centered = _centered_ranks(np.ascontiguousarray(np.moveaxis(np.round(merits, 9), -3, 0)))  # methods, ..., 2, f
    a, b = centered[..., 0, :], centered[..., 1, :]
    scale = np.sqrt(np.square(a).sum(axis=0) * np.square(b).sum(axis=0))
    total = np.divide((a * b).sum(axis=0), scale, out=np.zeros(scale.shape), where=scale > 0).sum(axis=-1)
    defined = (scale > 0).sum(axis=-1)
    return np.asarray(np.divide(total, defined, out=np.full(defined.shape, np.nan), where=defined > 0))


def _centered_ranks(values: Array) -> Array:
    """Ranks along the first axis, less the mean rank: half the values below minus half those above; ties share."""
    balance = np.zeros(values.shape, np.int16)
    for i, j in combinations(range(len(values)), 2):  # all pairs at once would need as many times the memory
        above = (values[i] > values[j]).view(np.int8) - (values[i] < values[j]).view(np.int8)
        balance[i] += above
        balance[j] -= above
    return balance / 2


def _grid(found: Array, pooled: Array, fractions: Array) -> _Grid:
    """Each side has one spread for all fractions; its estimate is what the measured variance exceeds the noise by."""
    count = len(fractions)
    excess = (np.mean(found**2, axis=0) - np.diag(pooled)).reshape(2, count).mean(axis=1)
    least = LEAST_SPREAD * np.diag(pooled).reshape(2, count).mean(axis=1)
    spread = np.repeat(np.sqrt(np.maximum(excess, least) + 1e-12), count)
    distances = np.abs(fractions[:, None] - fractions)
    lengths = LENGTHS if count > 1 else LENGTHS[:1]
    alongs = [np.linalg.cholesky(np.exp(-distances / length) + 1e-9 * np.eye(count)) for length in lengths]
    betweens = [np.array([[1, 0], [r, np.sqrt(1 - r * r)]]) for r in CORRELATIONS]
    shapes = np.stack([np.kron(between, along) for along in alongs for between in betweens])
    roots = np.concatenate([np.sqrt(factor) * spread[:, None] * shapes for factor in SPREADS])
    return _Grid(roots @ roots.swapaxes(1, 2), roots)


def _posterior_weights(covariances: Array, found: Array, pooled: Array) -> Array:
    """How probable each distribution is, given what was measured; methods are taken to have the same noise here."""
    total = covariances + pooled + 1e-9 * np.eye(len(pooled))
    factors = np.linalg.cholesky(total)
    logdet = 2 * np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)
    misfit = np.square(np.linalg.solve(factors, np.broadcast_to(found.T, (len(total), *found.T.shape)))).sum(
        axis=(1, 2)
    )
    prior = np.tile(np.log(CORRELATION_WEIGHTS), len(total) // len(CORRELATIONS))
    score = prior - 0.5 * (len(found) * logdet + misfit)
    weights = np.exp(score - score.max())
    return np.asarray(weights / weights.sum())


def _picked(weights: Array, draws: int, generator: np.random.Generator) -> list[tuple[int, int]]:
    """Rows of the grid and the number of draws from each, in proportion to the weights (systematic sampling)."""
    steps = (np.arange(min(COMPONENTS, draws)) + generator.random()) / min(COMPONENTS, draws)
    rows: NDArray[np.int64] = np.minimum(np.searchsorted(np.cumsum(weights), steps), len(weights) - 1)
    picked, times = np.unique(rows, return_counts=True)
    ends = np.round(np.cumsum(times) / times.sum() * draws).astype(int)
    return list(zip(picked.tolist(), np.diff(ends, prepend=0).tolist(), strict=True))


def _gain(prior: Array, noise: Array, methods: int) -> Array:
    """Regression of true on measured merits, `(methods · columns)²`."""
    size = methods * len(prior)
    signal = np.kron(np.eye(methods), prior)
    total = signal + noise.reshape(size, size) + 1e-9 * np.eye(size)
    return np.asarray(linalg.solve(total, signal, assume_a="pos").T)
