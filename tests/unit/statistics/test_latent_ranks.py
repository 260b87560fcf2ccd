"""Draws of the true rank correlation behind measured merits."""

import numpy as np
import pytest

from roadworthy import statistics
from roadworthy.statistics.latent_ranks import (
    Measured,
    drawn_correlations,
    extreme_is_plausible,
    mean_rank_correlation,
)


def measured(first, second, noise, draws=400):
    """Merits in two settings at one fraction, with independent noise of that standard deviation."""
    merits = np.stack([first, second], axis=1).astype(float)[:, :, None]
    covariance = noise**2 * np.eye(merits.size).reshape(*merits.shape, *merits.shape)
    drawn = noise * np.random.default_rng(0).normal(size=(draws, *merits.shape))
    return Measured(merits, covariance, drawn, np.array([0.5]))


def test_the_mean_correlation_is_spearmans_averaged_over_fractions_that_rank():
    merits = np.random.default_rng(0).integers(4, size=(7, 2, 5)).astype(float)  # with ties
    merits[:, 1, 2] = 1.0  # all tie: no ranking
    expected = np.mean([statistics.spearman(*merits[:, :, f].T) for f in (0, 1, 3, 4)])
    assert mean_rank_correlation(merits) == pytest.approx(expected)
    assert np.isnan(mean_rank_correlation(np.ones((3, 2, 1))))


def test_hundreds_of_methods_are_ranked():
    merits = np.arange(300.0)[:, None, None] * [[1], [-1]]  # opposite orders: −1
    assert mean_rank_correlation(merits) == pytest.approx(-1)


def test_merits_that_noise_cannot_reorder_have_one_correlation():
    # Ranks 1 2 3 4 and 1 3 2 4: 1 − 6 · 2/(4 · 15) = .8
    drawn = drawn_correlations(measured([1, 2, 3, 4], [1, 3, 2, 4], 0.01), np.random.default_rng(0))
    assert np.allclose(drawn, 0.8)


def test_merits_that_are_all_noise_may_agree_or_disagree_perfectly():
    drawn = drawn_correlations(measured([1, 2, 3, 4], [2, 1, 4, 3], 30.0), np.random.default_rng(0))
    low, high = np.quantile(drawn, [0.025, 0.975])
    assert (low, high) == (-1, 1)


def test_perfect_agreement_is_plausible_only_if_noise_explains_the_difference():
    swapped = ([1, 2, 3, 4, 5], [1, 2, 4, 3, 5])  # correlation .9: two methods swapped, 1 apart
    assert extreme_is_plausible(measured(*swapped, 0.5), 1, 0.025)
    assert not extreme_is_plausible(measured(*swapped, 0.05), 1, 0.025)
    assert not extreme_is_plausible(measured(*swapped, 0.5), -1, 0.025)
    reversed_ = (swapped[0], [-merit for merit in swapped[1]])
    assert extreme_is_plausible(measured(*reversed_, 0.5), -1, 0.025)
