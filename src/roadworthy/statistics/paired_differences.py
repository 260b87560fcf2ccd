"""Paired comparisons of all methods on one score: the basis of ranks, tests and groups."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from roadworthy.statistics.anytime import anytime_bounds
from roadworthy.statistics.betting import betting_interval
from roadworthy.statistics.bootstrap import DRAWS, MANY_SEEDS, expanded, resampled_means, standardized
from roadworthy.statistics.early_stopping import StoppingRule
from roadworthy.statistics.intervals import CONFIDENCE, Array, Variance, unanimous_interval, variance_of_mean
from roadworthy.statistics.scores import SCORES, Block, Score

Indices = NDArray[np.int64]


class PairedDifferences(NamedTuple):
    """Differences between the methods `first[i]` and `second[i]`, positive where the first is better."""

    first: Indices
    second: Indices
    mean: Array
    low: Array
    high: Array
    """simultaneous intervals: all of them hold at once with the given confidence"""
    p: Array
    """p-value of the paired test, not corrected"""
    probability: Array
    """that the first beats the second: the proportion of resampled studies in which it does"""
    wins: Array
    """proportion of images on which the first is better; ties count half"""
    variance: Variance
    tests: int
    """comparisons that share the error"""
    corrected: Array | None = None
    """p-values that hold for all pairs together; None: by Holm from `p`"""


@dataclass(frozen=True, eq=False)
class PairedComparisons:
    """All methods on one score, and the differences between every two of them."""

    methods: tuple[str, ...]
    score: Array
    low: Array
    high: Array
    """interval of each score separately"""
    higher_is_better: bool
    differences: PairedDifferences
    images: int

    @property
    def better(self) -> NDArray[np.bool_]:
        """[a, b]: a is clearly better than b."""
        pairs = self.differences
        clear = np.zeros((len(self.methods), len(self.methods)), dtype=bool)
        clear[pairs.first, pairs.second] = pairs.low > 0
        clear[pairs.second, pairs.first] = pairs.high < 0
        return clear

    @property
    def ranks(self) -> tuple[Indices, Indices, Indices]:
        """Rank (1 is best, equal scores share it), and the lowest and highest rank that the differences allow.

        The rank is at least 1 + the number of methods that are clearly better, and at most k − the number that are
        clearly worse. The intervals of the differences hold simultaneously, so these do, too.
        """
        merit = np.round(self.score, 12) * (1 if self.higher_is_better else -1)
        low, high = 1 + self.better.sum(axis=0), len(self.methods) - self.better.sum(axis=1)
        return stats.rankdata(-merit, method="min").astype(np.int64), low, high


def paired_comparisons(
    block: Block,
    confidence: float = CONFIDENCE,
    stopping: StoppingRule | None = None,
    draws: int = DRAWS,
    seed: int = 0,
    intervals: bool = True,
) -> dict[str, PairedComparisons]:
    """Paired comparisons for each score of the block; all scores resample the same images.

    `intervals`: False where only the side of 0 matters; with a `stopping` rule this is much faster.
    """
    if stopping:
        return {
            name: _anytime(runs, SCORES[name], confidence, stopping, intervals) for name, runs in block.scores.items()
        }
    stacked = np.concatenate([np.stack(list(runs.values())) for runs in block.scores.values()])
    means = resampled_means(stacked, draws, seed)
    ends = np.cumsum([len(runs) for runs in block.scores.values()])[:-1]
    return {
        name: _fixed(runs, SCORES[name], confidence, part)
        for (name, runs), part in zip(block.scores.items(), np.split(means, ends, axis=1), strict=True)
    }


def _fixed(runs: Mapping[str, Array], score: Score, confidence: float, means: Array) -> PairedComparisons:
    """For a number of images that was fixed in advance. `means`: resampled scores `(draws, methods)`."""
    values = np.stack(list(runs.values()))
    center, variance = values.mean(axis=(1, 2)), variance_of_mean(values)
    tails = [(1 - confidence) / 2, (1 + confidence) / 2]
    low, high = np.quantile(expanded(means, center, variance, confidence), tails, axis=0)
    for row in np.flatnonzero(variance.error == 0):
        low[row], high[row] = unanimous_interval(center[row], values.shape[-1], score.bounds, 1 - confidence)
    low, high = np.clip(low, *score.bounds), np.clip(high, *score.bounds)
    differences = _fixed_differences(values, score, confidence, means)
    return PairedComparisons(tuple(runs), center, low, high, score.higher_is_better, differences, values.shape[-1])


def _fixed_differences(values: Array, score: Score, confidence: float, means: Array) -> PairedDifferences:
    first, second = np.triu_indices(len(values), k=1)
    sign, tests, images = (1 if score.higher_is_better else -1), len(first), values.shape[-1]
    mean, wins, variance = _differences(sign * values, first, second)
    drawn = sign * (means[:, first] - means[:, second])
    bonferroni = (1 - confidence) / (2 * max(tests, 1))
    # Few seeds are not resampled, so the draws do not show how the differences are correlated.
    few_seeds = 1 < values.shape[1] < MANY_SEEDS
    tail = bonferroni if few_seeds else _max_t_tail(standardized(drawn, mean), confidence, bonferroni)
    half = variance.half_width(tail)
    low, high, p = mean - half, mean + half, variance.p(mean)
    reach = score.bounds[1] - score.bounds[0]
    for row in np.flatnonzero(variance.error == 0):
        low[row], high[row] = unanimous_interval(mean[row], images, (-reach, reach), (1 - confidence) / tests)
        # The smallest error at which `unanimous_interval` excludes 0.
        p[row] = min(1.0, 2 * (reach / (abs(mean[row]) + reach)) ** images)
    stretched = expanded(drawn, mean, variance, confidence)
    probability = ((stretched > 0) + 0.5 * (stretched == 0)).mean(axis=0)
    probability = np.where(np.isnan(low), np.nan, probability)  # a single image
    return PairedDifferences(first, second, mean, low, high, p, probability, wins, variance, tests)


def _max_t_tail(drawn: Array, confidence: float, bonferroni: float) -> float:
    """The tail probability at which all intervals hold simultaneously: max-t, never below Bonferroni's.

    The draws say how often the largest standardized difference exceeds a bound, including correlations. The bound is
    returned as a tail probability, so that Student's t can widen the intervals where images or seeds are few.
    """
    largest = np.sort(np.abs(drawn).max(axis=1, initial=0))
    # The upper 95 % bound of the quantile, not the quantile itself: a lucky set of draws must not narrow the intervals.
    bound = largest[min(int(stats.binom.ppf(0.95, len(largest), confidence)), len(largest) - 1)]
    return float(np.clip(stats.norm.sf(bound), bonferroni, (1 - confidence) / 2))


def _anytime(
    runs: Mapping[str, Array], score: Score, confidence: float, stopping: StoppingRule, intervals: bool
) -> PairedComparisons:
    """For a number of images that depends on the data: bounds by betting remain valid."""
    values = np.stack(list(runs.values()))
    low, high = np.transpose([betting_interval(run.mean(axis=0), score.bounds, 1 - confidence) for run in values])
    sign, (first, second) = (1 if score.higher_is_better else -1), np.triu_indices(len(values), k=1)
    mean, wins, variance = _differences(sign * values, first, second)
    reach, unknown = score.bounds[1] - score.bounds[0], np.full(len(first), np.nan)
    bounds = anytime_bounds(tuple(runs), sign * values.mean(axis=1), reach, stopping, intervals)
    differences = PairedDifferences(
        first,
        second,
        mean,
        bounds.low,
        bounds.high,
        bounds.p,
        unknown,
        wins,
        variance,
        stopping.tests,
        bounds.corrected,
    )
    center = values.mean(axis=(1, 2))
    return PairedComparisons(tuple(runs), center, low, high, score.higher_is_better, differences, values.shape[-1])


def _differences(values: Array, first: Indices, second: Indices) -> tuple[Array, Array, Variance]:
    """Mean differences, proportions of images won, and the variance of the mean differences, for each pair."""
    rows = []
    for a, b in zip(first, second, strict=True):
        paired = values[a] - values[b]
        per_image = np.round(paired.mean(axis=0), 12)
        won = ((per_image > 0) + 0.5 * (per_image == 0)).mean()
        rows.append((paired.mean(), won, *variance_of_mean(paired)[:2]))
    mean, wins, images, seeds = np.reshape(rows, (len(first), 4)).T
    return mean, wins, Variance(images, seeds, variance_of_mean(values[0]).dof)
