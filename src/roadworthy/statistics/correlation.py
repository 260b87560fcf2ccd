"""Rank correlation and agreement: Spearman, Kendall, Krippendorff. NaN where one side ties throughout."""

import numpy as np
from scipy import stats

from roadworthy.statistics.intervals import Array


def spearman(first: Array, second: Array) -> float:
    """Correlation of ranks; ties get their mean rank.

    >>> spearman(np.array([1.0, 2.0, 3.0]), np.array([1.0, 3.0, 2.0]))
    0.5
    """
    a, b = stats.rankdata(first), stats.rankdata(second)
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return float("nan")
    return float(round(np.corrcoef(a, b)[0, 1], 12))


def kendall(first: Array, second: Array) -> float:
    """Kendall's tau-b: concordant minus discordant pairs, normalized by the pairs that are not tied.

    >>> round(kendall(np.array([1.0, 2.0, 3.0]), np.array([1.0, 3.0, 2.0])), 3)  # (2 − 1)/3
    0.333
    """
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        return float("nan")
    return float(round(stats.kendalltau(first, second).statistic, 12))


def rank_alpha(first: Array, second: Array) -> float:
    """Krippendorff's ordinal alpha of two rankings: the settings are the raters, the methods the units.

    Each side is ranked first; ties get their mean rank. Unlike a correlation, alpha corrects for small samples: with
    few methods it is closer to 1 than Spearman's coefficient at the same disagreement.
    """
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        return float("nan")
    return krippendorff(np.stack([stats.rankdata(first), stats.rankdata(second)]))


def krippendorff(ratings: Array) -> float:
    """Krippendorff's alpha with the ordinal metric, of ratings `(raters, units)`; NaN = not rated.

    1 − observed ÷ expected disagreement: 1 is perfect agreement, 0 is chance. The distance of two values is the number
    of ratings from one to the other, with the two ends counted half (Krippendorff 2011).

    >>> round(krippendorff(np.array([[1.0, 2.0, 3.0], [1.0, 3.0, 2.0]])), 4)  # 1 − 16/38.4
    0.5833
    """
    levels = np.unique(ratings[~np.isnan(ratings)])
    counts = (ratings[:, :, None] == levels).sum(axis=0).astype(np.float64)  # units × levels
    # Ordered pairs of ratings of one unit; a unit rated once has none.
    weights = 1 / np.maximum(counts.sum(axis=1) - 1, 1)
    coincidences = np.einsum("uc,uk,u->ck", counts, counts, weights) - np.diag(counts.T @ weights)
    totals = coincidences.sum(axis=1)
    positions = np.cumsum(totals) - totals / 2
    distance = (positions[:, None] - positions[None, :]) ** 2
    expected = (np.outer(totals, totals) * distance).sum() / max(totals.sum() - 1, 1)
    return float(round(1 - (coincidences * distance).sum() / expected, 12)) if expected > 0 else float("nan")
