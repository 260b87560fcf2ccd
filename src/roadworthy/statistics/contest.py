"""Every method against every other on one score: the paired comparisons from which ranks, tests and groups follow."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from roadworthy.statistics.betting import betting_interval, betting_p
from roadworthy.statistics.bootstrap import DRAWS, MANY_SEEDS, expanded, resampled_means, standardized
from roadworthy.statistics.intervals import LEVEL, Array, Variance, unanimous, variance_of_mean
from roadworthy.statistics.scores import SCORES, Block, Score

Ranks = NDArray[np.int64]


class Stopping(NamedTuple):
    """The rule by which a comparison stopped early; every bound then holds at whatever time one stops."""

    level: float
    margin: float
    """scores that surely differ by less are a tie"""
    pairs: int
    """comparisons that share the error (Bonferroni): all pairs in every block, copies made afterwards included"""


class Duels(NamedTuple):
    """The pairs of methods: `first[i]` against `second[i]`, positive where the first is better."""

    first: Ranks
    second: Ranks
    difference: Array
    low: Array
    high: Array
    """simultaneous: with probability `level` all of them hold at once"""
    p: Array
    """of the paired test, not yet corrected"""
    probability: Array
    """that the first beats the second: the share of resampled studies in which it does"""
    wins: Array
    """share of images on which the first is better, ties counting half"""
    variance: Variance
    tests: int
    """comparisons that share the error"""


@dataclass(frozen=True, eq=False)
class Contest:
    methods: tuple[str, ...]
    score: Array
    low: Array
    high: Array
    """each method's own interval"""
    higher_is_better: bool
    duels: Duels
    images: int

    @property
    def better(self) -> NDArray[np.bool_]:
        """[a, b]: a is clearly better than b."""
        clear = np.zeros((len(self.methods), len(self.methods)), dtype=bool)
        clear[self.duels.first, self.duels.second] = self.duels.low > 0
        clear[self.duels.second, self.duels.first] = self.duels.high < 0
        return clear

    @property
    def ranks(self) -> tuple[Ranks, Ranks, Ranks]:
        """Rank (1 is best, equal scores share it), and the least and the greatest that the pairs leave open.

        At least 1 + those clearly better, at most k − those clearly worse. As the pairs' intervals hold together,
        so do these.
        """
        merit = np.round(self.score, 12) * (1 if self.higher_is_better else -1)
        low, high = 1 + self.better.sum(axis=0), len(self.methods) - self.better.sum(axis=1)
        return stats.rankdata(-merit, method="min").astype(np.int64), low, high


def contests(
    block: Block, level: float = LEVEL, stopping: Stopping | None = None, draws: int = DRAWS, seed: int = 0
) -> dict[str, Contest]:
    """A contest per score of the block; all of them resample the same images."""
    if stopping:
        return {name: _anytime(runs, SCORES[name], level, stopping) for name, runs in block.scores.items()}
    stacked = np.concatenate([np.stack(list(runs.values())) for runs in block.scores.values()])
    means = resampled_means(stacked, draws, seed)
    ends = np.cumsum([len(runs) for runs in block.scores.values()])[:-1]
    return {
        name: _fixed(runs, SCORES[name], level, part)
        for (name, runs), part in zip(block.scores.items(), np.split(means, ends, axis=1), strict=True)
    }


def _fixed(runs: Mapping[str, Array], score: Score, level: float, means: Array) -> Contest:
    """The number of images was fixed beforehand. `means`: resampled scores `(draws, methods)`."""
    values = np.stack(list(runs.values()))
    center, variance = values.mean(axis=(1, 2)), variance_of_mean(values)
    low, high = np.quantile(expanded(means, center, variance, level), [(1 - level) / 2, (1 + level) / 2], axis=0)
    for row in np.flatnonzero(variance.error == 0):
        low[row], high[row] = unanimous(center[row], values.shape[-1], score.bounds, 1 - level)
    low, high = np.clip(low, *score.bounds), np.clip(high, *score.bounds)
    return Contest(
        tuple(runs),
        center,
        low,
        high,
        score.higher_is_better,
        _fixed_duels(values, score, level, means),
        values.shape[-1],
    )


def _fixed_duels(values: Array, score: Score, level: float, means: Array) -> Duels:
    first, second = np.triu_indices(len(values), k=1)
    sign, tests, images = (1 if score.higher_is_better else -1), len(first), values.shape[-1]
    difference, wins, variance = _paired(sign * values, first, second)
    drawn = sign * (means[:, first] - means[:, second])
    safe = (1 - level) / (2 * max(tests, 1))
    few_seeds = 1 < values.shape[1] < MANY_SEEDS  # they were not resampled: how pairs go together is not known
    half = variance.half_width(safe if few_seeds else _tail(standardized(drawn, difference), level, safe))
    low, high, p = difference - half, difference + half, variance.p(difference)
    reach = score.bounds[1] - score.bounds[0]
    for row in np.flatnonzero(variance.error == 0):
        low[row], high[row] = unanimous(difference[row], images, (-reach, reach), (1 - level) / tests)
        # The least error at which `unanimous` leaves 0 out.
        p[row] = min(1.0, 2 * (reach / (abs(difference[row]) + reach)) ** images)
    stretched = expanded(drawn, difference, variance, level)
    probability = ((stretched > 0) + 0.5 * (stretched == 0)).mean(axis=0)
    return Duels(first, second, difference, low, high, p, probability, wins, variance, tests)


def _tail(drawn: Array, level: float, safe: float) -> float:
    """The error left to one end of one interval so that all of them hold together: max-t; Bonferroni's at worst.

    The draws say how often the largest of all standardized differences exceeds a bound, correlations included; that
    bound is handed on as a tail probability, so that Student's t can widen it where images or seeds are few.
    """
    largest = np.sort(np.abs(drawn).max(axis=1, initial=0))
    # Not the quantile of the draws but its upper bound (95 %): a lucky set of draws must not narrow the intervals.
    bound = largest[min(int(stats.binom.ppf(0.95, len(largest), level)), len(largest) - 1)]
    return float(np.clip(stats.norm.sf(bound), safe, (1 - level) / 2))


def _anytime(runs: Mapping[str, Array], score: Score, level: float, stopping: Stopping) -> Contest:
    """The images themselves said when to stop: betting intervals hold all the same."""
    values = np.stack(list(runs.values()))
    low, high = np.transpose([betting_interval(one.mean(axis=0), score.bounds, 1 - level) for one in values])
    sign, (first, second) = (1 if score.higher_is_better else -1), np.triu_indices(len(values), k=1)
    difference, wins, variance = _paired(sign * values, first, second)
    reach = score.bounds[1] - score.bounds[0]
    ends, p = np.empty((2, len(first))), np.empty(len(first))
    for row, (a, b) in enumerate(zip(first, second, strict=True)):
        paired = sign * (values[a] - values[b]).mean(axis=0)
        ends[:, row] = betting_interval(paired, (-reach, reach), (1 - stopping.level) / stopping.pairs)
        p[row] = betting_p(paired, (-reach, reach))
    gap = np.full(len(first), np.nan)
    duels = Duels(first, second, difference, ends[0], ends[1], p, gap, wins, variance, stopping.pairs)
    return Contest(tuple(runs), values.mean(axis=(1, 2)), low, high, score.higher_is_better, duels, values.shape[-1])


def _paired(values: Array, first: Ranks, second: Ranks) -> tuple[Array, Array, Variance]:
    """Mean differences, shares of images won, and the variance of the mean differences, pair by pair."""
    found = []
    for a, b in zip(first, second, strict=True):
        paired = values[a] - values[b]
        per_image = np.round(paired.mean(axis=0), 12)
        won = ((per_image > 0) + 0.5 * (per_image == 0)).mean()
        found.append((paired.mean(), won, *variance_of_mean(paired)[:2]))
    difference, wins, images, seeds = np.reshape(found, (len(first), 4)).T
    return difference, wins, Variance(images, seeds, variance_of_mean(values[0]).freedom)
