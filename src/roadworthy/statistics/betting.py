"""Anytime-valid confidence intervals of a bounded mean, by betting.

Bet against "the mean is at most m": start with wealth 1 and stake a fraction c of it on each value x, which multiplies
the wealth by 1 − c + c · (x − floor)/(m − floor). If the claim is true, no stake makes money on average, so the wealth
is a non-negative supermartingale and ever reaches 1/a with probability at most a, however often one looks (Ville's
inequality). The stakes c form a fixed grid and the wealth is averaged over them (a mixture, as in Robbins 1970;
betting: Waudby-Smith and Ramdas 2024). The values m that are not rejected form an interval, because the wealth
decreases in m.

The guarantee holds at every number of images, for any distribution within the bounds, provided that the images are an
independent sample or a sample in random order.
"""

import numpy as np
from scipy.optimize import brentq

from roadworthy.statistics.intervals import Array

STAKES = 0.95 * 0.62 ** np.arange(9)
"""from 95 % down to about 2 %, so dense that little is lost compared with the best stake in between"""


def betting_interval(values: Array, bounds: tuple[float, float], error: float) -> tuple[float, float]:
    """Contains the mean at all times simultaneously with probability 1 − `error`, split evenly between the two ends.

    >>> low, high = betting_interval(np.ones(200), (-1.0, 1.0), 0.05)
    >>> 0.9 < low < high == 1
    True
    """
    floor, ceiling = bounds
    return _lower_end(values, floor, error / 2), -_lower_end(-values, -ceiling, error / 2)


def betting_p(values: Array, bounds: tuple[float, float]) -> float:
    """Anytime-valid p-value against mean 0: the smallest `error` at which the interval excludes 0, at most 1."""
    distinct, counts = _distinct(values)
    up = log_wealth(distinct, counts, bounds[0], 0.0)
    down = log_wealth(-distinct, counts, -bounds[1], 0.0)
    return float(min(1.0, 2 * np.exp(-max(up, down))))


def _lower_end(values: Array, floor: float, error: float) -> float:
    """The smallest mean that is not rejected."""
    distinct, counts = _distinct(values)
    mean, goal = float(values.mean()), -float(np.log(error))
    nearest = floor + 1e-9 * max(1.0, abs(floor))
    if mean <= nearest or log_wealth(distinct, counts, floor, nearest) < goal:
        return floor
    # At the sample mean the wealth is at most 1, by Jensen's inequality: the crossing lies in between.
    return float(brentq(lambda m: log_wealth(distinct, counts, floor, m) - goal, nearest, mean, xtol=1e-6))


def log_wealth(values: Array, counts: Array, floor: float, mean: float) -> float:
    """Log wealth of the mixture that bets on a mean above `mean`, after each value was seen `counts` times."""
    gains = np.maximum(values - floor, 0) / (mean - floor)
    logs = np.log1p(STAKES[:, None] * (gains - 1)) @ counts
    return float(np.logaddexp.reduce(logs) - np.log(len(STAKES)))


def _distinct(values: Array) -> tuple[Array, Array]:
    """Distinct values, up to rounding, and their counts. Scores of accuracies take few values."""
    distinct, counts = np.unique(np.round(values, 12), return_counts=True)
    return distinct, counts.astype(np.float64)
