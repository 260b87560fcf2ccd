"""Anytime-valid intervals of a bounded mean, by betting.

Bet against "the mean is at most m": from wealth 1, stake a share c of it on each value x, which turns it into
wealth · (1 − c + c · (x − floor)/(m − floor)). If the claim is true no stake makes money on average, so wealth is a
non-negative supermartingale and reaches 1/a with probability at most a, at whatever time one looks (Ville). The stakes
c are a fixed grid, wealth is their mean (a mixture, as in Robbins 1970; betting: Waudby-Smith and Ramdas 2024). The m
that have not been ruined form an interval, because wealth falls as m grows.

The guarantee holds at every number of images, for any distribution within the bounds, as long as the images are an
independent sample (or one in random order).
"""

import numpy as np
from scipy.optimize import brentq

from roadworthy.statistics.intervals import Array

STAKES = 0.95 * 0.62 ** np.arange(9)
"""from nearly everything to about 2 %: neighbors are so near that the best one in between loses little"""


def betting_interval(values: Array, bounds: tuple[float, float], error: float) -> tuple[float, float]:
    """Holds the mean at all times at once with probability 1 − `error`, shared by its two ends.

    >>> low, high = betting_interval(np.ones(200), (-1.0, 1.0), 0.05)
    >>> 0.9 < low < high == 1
    True
    """
    floor, ceiling = bounds
    return _lowest(values, floor, error / 2), -_lowest(-values, -ceiling, error / 2)


def betting_p(values: Array, bounds: tuple[float, float]) -> float:
    """Against mean 0, at any time: the least `error` at which the interval leaves 0 out, at most 1."""
    distinct, counts = _distinct(values)
    up = log_wealth(distinct, counts, bounds[0], 0.0)
    down = log_wealth(-distinct, counts, -bounds[1], 0.0)
    return float(min(1.0, 2 * np.exp(-max(up, down))))


def _lowest(values: Array, floor: float, error: float) -> float:
    """The least mean that is still believable."""
    distinct, counts = _distinct(values)
    mean, goal = float(values.mean()), -float(np.log(error))
    nearest = floor + 1e-9 * max(1.0, abs(floor))
    if mean <= nearest or log_wealth(distinct, counts, floor, nearest) < goal:
        return floor
    # At the sample's own mean wealth is at most 1, by Jensen's inequality: the crossing lies in between.
    return float(brentq(lambda m: log_wealth(distinct, counts, floor, m) - goal, nearest, mean, xtol=1e-6))


def log_wealth(values: Array, counts: Array, floor: float, mean: float) -> float:
    """Of the mixture that bets that the mean lies above `mean`, after each value was seen so many times."""
    gains = np.maximum(values - floor, 0) / (mean - floor)
    logs = np.log1p(STAKES[:, None] * (gains - 1)) @ counts
    return float(np.logaddexp.reduce(logs) - np.log(len(STAKES)))


def _distinct(values: Array) -> tuple[Array, Array]:
    """Maps of accuracies take few values; a bet looks at each once. Rounding dust does not make two of one."""
    distinct, counts = np.unique(np.round(values, 12), return_counts=True)
    return distinct, counts.astype(np.float64)
