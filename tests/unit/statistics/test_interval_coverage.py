"""The machinery of bench/interval_coverage.py, with few studies: the figures themselves are in docs/statistics.md."""

import numpy as np
import pytest
from scipy import stats

from bench import interval_coverage as coverage


def test_simulated_accuracies_are_those_that_were_asked_for():
    # 20,000 images: standard error of an accuracy at most .0035.
    thresholds = coverage.merits(np.random.default_rng(0), 5, 3, 0.3, 0.5)
    correct = coverage.hits(np.random.default_rng(1), thresholds, 20_000)
    assert correct.shape == (5, 2, 3, 20_000)
    assert np.abs(correct.mean(axis=-1) - stats.norm.cdf(thresholds)).max() < 0.015
    # Images are easy or hard for all methods, so methods are correlated; by how much the shares of the parts say.
    assert np.corrcoef(correct[0, 0, 0], correct[4, 1, 2])[0, 1] > 0.1


@pytest.mark.parametrize("rows", coverage.ROWS, ids=lambda rows: rows.__name__)
def test_every_kind_of_row_is_measured(rows):
    found = coverage.measured(next(rows()), draws=4)
    for row in found:
        assert 0.25 <= row["coverage"] <= 1
        assert row["kind"] in ("pointwise", "simultaneous", "anytime")


def test_a_row_holds_up_to_two_standard_errors():
    # 2,000 studies: 2 · sqrt(.05 · .95/2000) = .97 %
    def row(coverage, kind):
        return {"coverage": coverage, "kind": kind, "draws": 2000}

    assert coverage.holds(row(0.925, "pointwise")) == "yes"
    assert coverage.holds(row(0.915, "pointwise")) == "NO"
    assert coverage.holds(row(0.985, "pointwise")) == "conservative"
    assert coverage.holds(row(0.942, "anytime")) == "yes"
    assert coverage.holds(row(0.935, "simultaneous")) == "NO"
