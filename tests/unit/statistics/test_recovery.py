"""How far scores recover a known order."""

import numpy as np
import pytest

from roadworthy.statistics import recovery

ORDER = (("a",), ("b", "c"), ("d",))


def test_the_true_order_is_recovered_whatever_equals_do():
    """b and c are truly tied: 5 pairs count. With the mean ranks (1, 2.5, 2.5, 4), Spearman is 1 if b and c tie."""
    assert recovery({"a": 4, "b": 2, "c": 3, "d": 1}, ORDER)[:2] == (True, 1.0)
    assert recovery({"a": 4, "b": 2, "c": 2, "d": 1}, ORDER) == (True, 1.0, 1.0)


def test_a_tie_of_different_maps_counts_half_and_is_not_the_whole_order():
    """Pairs ab, ac, ad, bd, cd: a = b is a half, the others are right: 4.5 of 5."""
    found = recovery({"a": 2, "b": 2, "c": 1.5, "d": 1}, ORDER)
    assert (found.whole, found.pairs) == (False, pytest.approx(0.9))


def test_the_reverse_has_no_pair_right():
    assert recovery({"a": 1, "b": 2, "c": 2, "d": 3}, ORDER) == (False, 0.0, -1.0)


def test_equal_scores_know_nothing():
    assert recovery(dict.fromkeys("abcd", 1.0), ORDER) == (False, 0.5, 0.0)


def test_random_scores_have_half_of_the_pairs_right():
    """5 pairs with mean ½; 4 standard errors of 500 draws are at most 4·0.5/√500 = 0.09."""
    generator = np.random.default_rng(0)
    draws = [recovery(dict(zip("abcd", generator.normal(size=4), strict=True)), ORDER).pairs for _ in range(500)]
    assert np.mean(draws) == pytest.approx(0.5, abs=0.09)
