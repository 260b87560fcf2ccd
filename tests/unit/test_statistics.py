"""Curves, scores, ranks and agreement against numbers worked out by hand."""

import numpy as np
import pandas as pd
import pytest

from roadworthy import statistics
from roadworthy.errors import InputError
from roadworthy.types import Dot, Verdict

FRACTIONS = (0.0, 0.2, 0.4)


def verdict(correct, probability=None):
    """A Verdict whose images are right where `correct` says so."""
    correct = np.asarray(correct)
    count = len(correct)
    return Verdict(
        ids=np.arange(count),
        labels=np.ones(count, dtype=np.int64),
        predicted=correct.astype(np.int64),
        probability=np.asarray(correct if probability is None else probability, dtype=np.float32),
    )


def study(**methods):
    """method = {order: three rows of per-image hits}"""
    return {
        Dot(method, order, "linear", "fixed-model", fraction, 0): verdict(row)
        for method, orders in methods.items()
        for order, rows in orders.items()
        for fraction, row in zip(FRACTIONS, rows, strict=True)
    }


GOOD = {"morf": [[1, 1, 1, 1], [1, 0, 0, 0], [0, 0, 0, 0]], "lerf": [[1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 1, 0]]}
BAD = {"morf": [[1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 1, 0]], "lerf": [[1, 1, 1, 1], [1, 0, 0, 0], [0, 0, 0, 0]]}


def test_curves_hold_accuracy_probability_and_wilsons_interval():
    curves = statistics.curves(study(good=GOOD)).set_index(["order", "fraction"])
    row = curves.loc[("morf", 0.2)]
    assert row["accuracy"] == 0.25
    # Wilson for 1 of 4 at 95 %: (0.25 + z²/8 ∓ z·sqrt(.25·.75/4 + z²/64)) / (1 + z²/4) with z = 1.95996
    assert row["low"] == pytest.approx(0.0456, abs=1e-4)
    assert row["high"] == pytest.approx(0.6994, abs=1e-4)
    assert list(curves.reset_index().columns[:2]) == ["order", "fraction"]


def test_areas_and_srg_are_those_of_the_definition():
    table = statistics.ranking(study(good=GOOD, bad=BAD)).set_index("method")
    # good, MoRF: 1, .25, 0 at 0, .2, .4: trapezoid (.625·.2 + .125·.2)/.4 = .375
    # good, LeRF: 1, 1, .75: (.2 + .175)/.4 = .9375
    assert table.loc["good", "morf"] == pytest.approx(0.375)
    assert table.loc["good", "lerf"] == pytest.approx(0.9375)
    assert table.loc["good", "srg"] == pytest.approx(0.5625)
    assert table.loc["bad", "srg"] == pytest.approx(-0.5625)
    assert list(table.index) == ["good", "bad"]


def test_aopc_is_the_mean_loss_over_fractions_above_zero():
    # losses .75 and 1: mean .875
    assert statistics.aopc(np.array([1.0, 0.25, 0.0]), FRACTIONS) == pytest.approx(0.875)


def test_ranks_follow_the_direction_of_each_order():
    table = statistics.ranking(study(good=GOOD, bad=BAD)).set_index("method")
    assert table.loc["good", ["srg_rank", "morf_rank", "lerf_rank"]].tolist() == [1, 1, 1]
    assert table.loc["bad", ["srg_rank", "morf_rank", "lerf_rank"]].tolist() == [2, 2, 2]


def test_equal_methods_share_a_rank_and_cannot_be_told_apart():
    table = statistics.ranking(study(one=GOOD, two=GOOD)).set_index("method")
    assert table["srg_rank"].tolist() == [1, 1]
    assert table["srg_rank_low"].tolist() == [1, 1]
    assert table["srg_rank_high"].tolist() == [2, 2]


def test_score_intervals_cover_the_truth_as_often_as_they_say():
    # 400 studies of 60 images, each image's area Bernoulli-like with mean .4: about 95 % ± 2.2 % (two standard errors)
    generator = np.random.default_rng(0)
    draws = generator.binomial(4, 0.4, size=(400, 60)) / 4
    hits = [low <= 0.4 <= high for low, high in map(statistics.mean_interval, draws)]
    assert 0.92 < np.mean(hits) < 0.98


def test_rank_intervals_hold_the_true_ranks():
    # Three methods, true means 0, 0.05 and 1: the first two are often confused, the last never.
    generator = np.random.default_rng(1)
    held, last_alone = [], []
    for _ in range(200):
        common = generator.normal(size=50)
        scores = {f"m{k}": mean + common + 0.5 * generator.normal(size=50) for k, mean in enumerate((0, 0.05, 1))}
        table = statistics.ranks(scores, higher_is_better=True)
        truth = [3, 2, 1]
        held.append(all(table["rank_low"] <= truth) and all(table["rank_high"] >= truth))
        last_alone.append(table["rank_high"].iloc[2] == 1)
    assert np.mean(held) >= 0.95
    assert np.mean(last_alone) > 0.95


def curve_study(table):
    """{(order, imputer): {method: accuracies at the fractions above 0 given}}, on 10 images."""
    return {
        Dot(method, order, imputer, "fixed-model", fraction, 0): verdict(np.arange(10) < round(10 * accuracy))
        for (order, imputer), methods in table.items()
        for method, accuracies in methods.items()
        for fraction, accuracy in {0.0: 1.0, **accuracies}.items()
    }


def test_consistency_orients_the_orders_and_pairs_shares():
    morf = {"a": {0.1: 0.1, 0.9: 0.3}, "b": {0.1: 0.2, 0.9: 0.2}, "c": {0.1: 0.3, 0.9: 0.1}}
    lerf = {"a": {0.1: 0.9, 0.9: 0.1}, "b": {0.1: 0.8, 0.9: 0.2}, "c": {0.1: 0.7, 0.9: 0.3}}
    table = statistics.consistency(curve_study({("morf", "linear"): morf, ("lerf", "linear"): lerf}))
    found = table.set_index("pairing")["spearman"]
    # At .1 MoRF ranks a b c (low is good), at .9 c b a; LeRF at .1 a b c (high is good), at .9 c b a.
    # removed with removed: +1 and +1; removed with kept: .1 with .9 and .9 with .1: −1 and −1. Point 0 is left out.
    assert found["removed"] == pytest.approx(1)
    assert found["kept"] == pytest.approx(-1)
    assert (table["fractions"] == 2).all()


def test_consistency_leaves_out_controls_and_marks_points_without_a_ranking():
    one = {"a": {0.5: 0.1}, "b": {0.5: 0.2}, "random": {0.5: 0.9}}
    flat = {"a": {0.5: 0.4}, "b": {0.5: 0.4}, "random": {0.5: 0.1}}
    table = statistics.consistency(
        curve_study({("morf", "linear"): one, ("morf", "fixed"): flat}), controls=("random",)
    )
    assert np.isnan(table["spearman"].iloc[0])
    assert table["fractions"].iloc[0] == 0


def test_consistency_of_one_method_is_an_error():
    with pytest.raises(InputError, match="at least 2 methods"):
        statistics.consistency(study(only=GOOD))


def test_spearman_shares_ranks_among_ties():
    # ranks 1 2.5 2.5 4 and 1 2 3 4: covariance 4.5, variances 4.5 and 5: 4.5/sqrt(22.5) = .9487
    assert statistics.spearman(np.array([1.0, 2, 2, 3]), np.array([1.0, 2, 3, 4])) == pytest.approx(0.948683, abs=1e-6)


def test_seeds_are_averaged_image_by_image():
    both = {
        Dot("m", "morf", "linear", "fixed-model", fraction, seed): verdict(row)
        for seed, rows in ((0, [[1, 1], [1, 0]]), (1, [[1, 1], [0, 0]]))
        for fraction, row in zip((0.0, 0.5), rows, strict=True)
    }
    curves = statistics.curves(both).set_index("fraction")
    assert curves.loc[0.5, "accuracy"] == 0.25


def test_per_image_values_are_one_row_per_dot_and_image():
    frame = statistics.per_image(study(good=GOOD))
    assert len(frame) == 2 * 3 * 4
    assert list(frame.columns) == [
        "method", "order", "imputer", "judge", "fraction", "seed", "id", "label", "predicted", "probability",
    ]  # fmt: skip
    assert isinstance(frame, pd.DataFrame)


def test_the_summary_names_rivals_and_controls_that_win():
    text = statistics.summary(study(random=GOOD, mine=BAD), controls=("random",))
    assert "mine comes first on 4 images" in text
    assert "Beware" in text
    assert "random" in text
    assert "not clearly behind it: twin" in statistics.summary(study(mine=GOOD, twin=GOOD))
