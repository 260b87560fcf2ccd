"""Which method is the best, or what is the order of all: evidence by betting, valid at any number of images.

Against "a is not better than b" one bets on each image that a scores higher there: the wealth is multiplied by
1 + λ · (difference − its mean under the claim), where λ is chosen from the images before. If the claim is true, the
wealth is a non-negative supermartingale that starts at 1, so it ever reaches 1/e with probability at most e (Ville).
Stakes follow the spread seen so far (Waudby-Smith and Ramdas 2024): λ is best for a difference that needs h images, and
the wealth is averaged over several h.

Sampling without replacement from N images: if the mean of all is m, that of the images left is (N · m − sum)/(N − t)
after t images (Waudby-Smith and Ramdas 2020). Then the claims are about these N images.

Who is best? "i is the best" is refuted by betting on each image on the one rival that did best against i so far. The
true best method is refuted wrongly with probability e, however many rivals there are: there is one true best method.
The winner is the last one not refuted.

The order of k methods: wrong only if two neighbors of the true order are swapped, which are k − 1 claims, not
k · (k − 1)/2. "a is better than b" holds if on every way from b to a, in steps from a method to the next worse one,
some step is refuted.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from roadworthy.statistics.intervals import Array

Indices = NDArray[np.int64]
HORIZONS = 100 * 3.0 ** np.arange(6)
"""images after which a difference should be shown: 100 to 24,300"""
GOAL = 4.0
"""log wealth to aim at: about what "best" needs at 95 %"""
CAP = 0.95
"""of the wealth is staked at most"""


class Bets(NamedTuple):
    """Values `(..., n)` in ±`reach`, in the order in which they were seen, and what was known before each of them."""

    values: Array
    before: Array
    """sum of the values before"""
    spread: Array
    """their standard deviation"""
    reach: float
    population: int | None
    """images of a finite data set whose mean is meant"""

    def log_wealth(self, mean: float = 0.0) -> Array:
        """After some hundred images `(..., looks)`, of bets that the mean is above `mean`."""
        logs = (np.cumsum(np.log1p(gains), axis=-1)[..., self._looks] for gains in self._gains(mean))
        return np.asarray(np.logaddexp.reduce(list(logs), axis=0) - np.log(len(HORIZONS)))

    def final_wealth(self, mean: float) -> float:
        """The last entry of `log_wealth` of one sequence, faster."""
        logs = [np.log1p(gains).sum() for gains in self._gains(mean)]
        return float(np.logaddexp.reduce(logs) - np.log(len(HORIZONS)))

    def _gains(self, mean: float) -> Iterator[Array]:
        """By how much each image changes the wealth, for each horizon."""
        expected = self._expected(mean)
        above, most = self.values - expected, CAP / (self.reach + np.maximum(expected, 0))
        for horizon in HORIZONS:
            yield np.minimum(np.sqrt(2 * GOAL / horizon) / self.spread, most) * above

    @property
    def _looks(self) -> Indices:
        """Images after which the wealth is looked at: some hundreds, and the last one."""
        count = self.values.shape[-1]
        return np.arange(count - 1, -1, -max(1, count // 500))[::-1]

    def _expected(self, mean: float) -> Array:
        """Of the next image, if the mean is `mean`."""
        if self.population is None:
            return np.full(self.values.shape[-1:], mean)
        left = self.population - np.arange(self.values.shape[-1])
        return np.asarray((self.population * mean - self.before) / left)


def bets(values: Array, reach: float, population: int | None = None) -> Bets:
    """At first the spread is that of a single value of ±reach/2."""
    seen = np.arange(1, values.shape[-1] + 1)
    sums, squares = (_before(np.cumsum(part, axis=-1)) for part in (values, values**2))
    variance = (squares + reach**2 / 4) / seen - (sums / seen) ** 2
    return Bets(values, sums, np.sqrt(np.maximum(variance, 1e-4 * reach**2)), reach, population)


def _before(totals: Array) -> Array:
    return np.concatenate([np.zeros_like(totals[..., :1]), totals[..., :-1]], axis=-1)


def interval(values: Array, reach: float, error: float, population: int | None = None) -> tuple[float, float]:
    """Contains the mean of values `(n,)` at all times with probability 1 − `error`, split evenly between the ends."""
    up, down = (_lower_end(bets(side * values, reach, population), error / 2) for side in (1, -1))
    return up, -down


def _lower_end(played: Bets, error: float) -> float:
    """The smallest mean that is not refuted; the wealth decreases in the mean."""
    values, reach, population = played.values, played.reach, played.population
    mean, least = float(values.mean()), -reach
    if population is not None:
        # The images that are left score at least −reach each.
        least = float(values.sum() - reach * (population - len(values))) / population
    goal, nearest = -float(np.log(error)), least + 1e-9
    if nearest >= mean or played.final_wealth(nearest) < goal:
        return min(least, mean)
    if played.final_wealth(mean) >= goal:  # stakes that changed on the way can win even against the sample mean
        return mean
    return float(brentq(lambda m: played.final_wealth(m) - goal, nearest, mean, xtol=1e-6))


def refuted(values: Array, reach: float, population: int | None = None) -> Array:
    """Log evidence `(methods,)` against "this method is the best", from values `(methods, n)`, higher is better."""
    count = len(values)
    evidence = np.zeros(count)
    for row in range(count):
        played = bets(np.delete(values, row, axis=0) - values[row], reach, population)
        rival, images = np.argmax(played.before / played.spread, axis=0), np.arange(values.shape[-1])
        against, before, spread = (part[rival, images] for part in (played.values, played.before, played.spread))
        chosen = Bets(against, before, spread, reach, population)
        evidence[row] = _settled(chosen.log_wealth(), played.values.mean(axis=-1).max(), played)
    return evidence


def _settled(path: Array, difference: float, played: Bets) -> float:
    """The largest log wealth ever reached; if all images of a finite data set were seen, the difference is known."""
    if played.population is not None and played.values.shape[-1] >= played.population:
        return np.inf if difference > 1e-12 else 0.0
    return max(0.0, float(path.max()))


def best_evidence(values: Array, reach: float, population: int | None = None) -> Array:
    """Log evidence `(methods, methods)` that the first is better than the second: of the winner over all others."""
    against = refuted(values, reach, population)
    winner = int(np.argmin(against))
    evidence = np.zeros((len(values), len(values)))
    evidence[winner] = np.delete(against, winner).min(initial=np.inf)
    np.fill_diagonal(evidence, 0)
    return evidence


def weakest_way(evidence: Array) -> Array:
    """Log evidence that a is better than b in the order of all, from that of the pairs `(methods, methods)`.

    [a, b]: of all ways from b to a, the one whose best refuted step has the least evidence.
    """
    for middle in range(len(evidence)):
        # by way of `middle`, either part may hold the refuted step
        by_way = np.maximum(evidence[:, middle, None], evidence[None, middle, :])
        evidence = np.minimum(evidence, by_way)
    return evidence


def pair_evidence(values: Array, reach: float, population: int | None = None) -> Array:
    """Log evidence `(methods, methods)` that the first is better than the second, pair by pair; infinite on itself."""
    evidence: Array = np.full((len(values), len(values)), np.inf)
    for row in range(len(values)):
        others = np.arange(len(values)) != row
        played = bets(values[row] - values[others], reach, population)
        means, paths = played.values.mean(axis=-1), played.log_wealth()
        evidence[row, others] = [_settled(path, mean, played) for path, mean in zip(paths, means, strict=True)]
    return evidence
