"""Bounds of the differences between methods after early stopping: of each pair, and what the rule decides."""

from typing import NamedTuple

import numpy as np

from roadworthy.statistics.betting import betting_interval, betting_p
from roadworthy.statistics.early_stopping import StoppingRule
from roadworthy.statistics.evidence import best_evidence, interval, pair_evidence, weakest_way
from roadworthy.statistics.intervals import Array

SMALLEST = float(np.finfo(np.float64).tiny)
"""a bound that excludes 0 and nothing else"""


class AnytimeBounds(NamedTuple):
    """Of the pairs (0, 1), (0, 2), …, (1, 2), …, valid at any number of images."""

    low: Array
    high: Array
    p: Array
    corrected: Array | None
    """p-values that hold for all pairs together; None: by Holm from `p`"""


def anytime_bounds(
    names: tuple[str, ...], values: Array, reach: float, stopping: StoppingRule, intervals: bool = True
) -> AnytimeBounds:
    """Of values `(methods, images)`, higher is better, whose differences lie in ±`reach`."""
    if not stopping.methods:
        return _equal_bounds(values, reach, stopping)
    population = stopping.images if stopping.finite else None
    taken, total = values[:, stopping.taken(values.shape[-1])], 1 - stopping.confidence
    first, second = np.triu_indices(len(values), k=1)
    errors = np.array([stopping.error_of(names[a], names[b]) for a, b in zip(first, second, strict=True)], float)
    low, high = np.full((2, len(first)), [[-reach], [reach]])
    if intervals:
        for row, (a, b, error) in enumerate(zip(first, second, errors, strict=True)):
            low[row], high[row] = interval(taken[a] - taken[b], reach, error, population)
    wealth = pair_evidence(taken, reach, population)
    alone, decided = 2 * np.exp(-wealth), _decisions(names, taken, wealth, reach, stopping, population)
    above = np.minimum(decided[first, second], alone[first, second] * total / errors)
    below = np.minimum(decided[second, first], alone[second, first] * total / errors)
    # What is decided excludes 0, whatever the interval of the pair alone.
    low = np.where(above < total, np.maximum(low, SMALLEST), low)
    high = np.where(below < total, np.minimum(high, -SMALLEST), high)
    p = np.minimum(1, np.minimum(alone[first, second], alone[second, first]))
    return AnytimeBounds(low, high, p, np.minimum(1, np.minimum(above, below)))


def _decisions(
    names: tuple[str, ...], taken: Array, wealth: Array, reach: float, stopping: StoppingRule, population: int | None
) -> Array:
    """p-values `(methods, methods)`, for all pairs together, of "the first is better"; 1 where the rule is silent."""
    rows = [row for row, name in enumerate(names) if name in stopping.candidates]
    decided, pairs = np.ones((len(names), len(names))), np.ix_(rows, rows)
    if len(rows) > 1:
        best = stopping.until == "best"
        evidence = best_evidence(taken[rows], reach, population) if best else weakest_way(wealth[pairs])
        decided[pairs] = stopping.decision_factor * np.exp(-evidence)
    return decided


def _equal_bounds(values: Array, reach: float, stopping: StoppingRule) -> AnytimeBounds:
    """All pairs share the error equally, and the order of the images does not matter."""
    error, bounds = (1 - stopping.confidence) / stopping.comparisons, (-reach, reach)
    pairs = [values[a] - values[b] for a, b in np.transpose(np.triu_indices(len(values), k=1))]
    low, high = np.reshape([betting_interval(pair, bounds, error) for pair in pairs], (-1, 2)).T
    return AnytimeBounds(low, high, np.array([betting_p(pair, bounds) for pair in pairs], float), None)
