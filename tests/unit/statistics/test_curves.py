"""Curves, scores and their intervals, against numbers derived by hand."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from predictions import BAD, FRACTIONS, GOOD, prediction, study
from roadworthy import statistics
from roadworthy.core.errors import InputError, ShapeError
from roadworthy.core.results import Point
from roadworthy.report.tables import short_ranking
from roadworthy.statistics.intervals import unanimous_interval


def test_curves_hold_accuracy_probability_and_wilsons_interval():
    curves = statistics.curves(study(good=GOOD)).set_index(["order", "fraction"])
    row = curves.loc[("morf", 0.2)]
    assert row["accuracy"] == 0.25
    # Wilson for 1 of 4 at 95 %: (0.25 + z²/8 ∓ z·sqrt(.25·.75/4 + z²/64)) / (1 + z²/4) with z = 1.95996
    assert row["low"] == pytest.approx(0.0456, abs=1e-4)
    assert row["high"] == pytest.approx(0.6994, abs=1e-4)
    assert list(statistics.curves(study(good=GOOD)).columns) == [
        "method", "order", "imputer", "evaluator", "model", "units", "fraction", "accuracy", "probability", "low",
        "high", "probability_low", "probability_high",
    ]  # fmt: skip


def test_seeds_are_averaged_image_by_image():
    both = {
        Point("m", "morf", "linear", "no-retrain", fraction, seed): prediction(row)
        for seed, rows in ((0, [[1, 1], [1, 0]]), (1, [[1, 1], [0, 0]]))
        for fraction, row in zip((0.0, 0.5), rows, strict=True)
    }
    curves = statistics.curves(both).set_index("fraction")
    assert curves.loc[0.5, "accuracy"] == 0.25


def test_per_image_has_one_row_per_point_and_image():
    frame = statistics.per_image(study(good=GOOD))
    assert len(frame) == 2 * 3 * 4
    assert list(frame.columns) == [
        "method", "order", "imputer", "evaluator", "model", "units", "fraction", "seed", "id", "label", "predicted",
        "probability",
    ]  # fmt: skip
    assert isinstance(frame, pd.DataFrame)


# Scores and intervals


def test_areas_srg_and_aopc_are_those_of_the_definition():
    table = statistics.ranking(study(good=GOOD, bad=BAD)).set_index("method")
    # good, MoRF: 1, .25, 0 at 0, .2, .4: trapezoid (.625·.2 + .125·.2)/.4 = .375; losses .75 and 1: mean .875
    # good, LeRF: 1, 1, .75: (.2 + .175)/.4 = .9375; losses 0 and .25: mean .125
    assert table.loc["good", ["morf", "lerf", "srg"]].tolist() == pytest.approx([0.375, 0.9375, 0.5625])
    assert table.loc["good", ["morf_aopc", "lerf_aopc"]].tolist() == pytest.approx([0.875, 0.125])
    assert table.loc["bad", "srg"] == pytest.approx(-0.5625)
    assert list(table.index) == ["good", "bad"]


def test_scores_can_be_computed_from_probabilities():
    points = {
        Point("m", "morf", "linear", "no-retrain", fraction, 0): prediction([1, 1], probability)
        for fraction, probability in ((0.0, [1, 0.5]), (0.5, [0.5, 0.25]))
    }
    table = statistics.ranking(points, value="probability")
    assert table["morf"].item() == pytest.approx((0.75 + 0.375) / 2)  # trapezoid of .75 and .375
    assert table["morf_aopc"].item() == pytest.approx(0.375)


def test_every_score_states_its_direction():
    long = statistics.scores(statistics.ranking(study(good=GOOD, bad=BAD)))
    assert long.groupby("score")["direction"].unique().map(list).to_dict() == {
        "srg": ["higher is better"],
        "morf": ["lower is better"],
        "lerf": ["higher is better"],
        "morf_aopc": ["higher is better"],
        "lerf_aopc": ["lower is better"],
    }
    # Rank 1 is the better method in either direction.
    assert (long.loc[long["method"] == "good", "rank"] == 1).all()
    assert list(long.columns) == [
        "method", "control", "imputer", "evaluator", "model", "units", "score", "value", "low", "high", "rank",
        "rank_low", "rank_high", "direction",
    ]  # fmt: skip


def test_few_seeds_widen_the_interval_by_students_t():
    # Two runs at 0 and 1, the same on all images: standard error 1/2, t with 1 degree of freedom 12.706.
    assert statistics.mean_interval(np.array([[0.0, 0, 0], [1, 1, 1]])) == pytest.approx(
        (0.5 - 6.353, 0.5 + 6.353), abs=1e-3
    )
    # Half-widths of images and seeds add in quadrature. Image means .5 and 1.5: 12.706·.5; run means: the same.
    low, high = statistics.mean_interval(np.array([[0.0, 1.0], [1.0, 2.0]]))
    assert (high - low) / 2 == pytest.approx(np.sqrt(2) * 6.353, abs=1e-3)


def test_seeds_widen_the_intervals_of_an_evaluator_that_trains_but_not_of_a_fixed_model():
    # Every method gains the same between the two runs; for a fixed model that is noise of the images.
    rows = {0: GOOD, 1: {order: [[1] * 4] * 3 for order in ("morf", "lerf")}}
    widths = {}
    for evaluator in ("no-retrain", "retrain"):
        points = {
            point._replace(seed=seed): each
            for seed, row in rows.items()
            for point, each in study(evaluator, m=row).items()
        }
        table = statistics.ranking(points)
        widths[evaluator] = float((table["morf_high"] - table["morf_low"]).item())
    assert widths["retrain"] > widths["no-retrain"]


def test_a_score_on_which_all_images_agree_still_has_an_interval():
    table = statistics.ranking(study(m={"morf": [[1] * 100, [0] * 100, [0] * 100]}))
    # Every area is .25. If more than 1 − .025^(1/100) = 3.62 % of all images had another area, 100 images would agree
    # with probability below .025: from .25 − .0362·.25 to .25 + .0362·.75.
    assert table[["morf", "morf_low", "morf_high"]].iloc[0].tolist() == pytest.approx([0.25, 0.2409, 0.2772], abs=1e-4)
    # For a proportion this is the Clopper-Pearson interval.
    exact = stats.binomtest(100, 100).proportion_ci(0.95, method="exact")
    assert unanimous_interval(1.0, 100, (0.0, 1.0), 0.05) == pytest.approx((exact.low, exact.high))


def test_one_image_has_scores_but_no_intervals():
    table = statistics.ranking(study(a={"morf": [[1], [0], [0]]}, b={"morf": [[1], [1], [0]]})).set_index("method")
    assert table.loc["a", "morf"] == 0.25
    assert table[["morf_low", "morf_high"]].isna().all(axis=None)
    assert table["morf_rank"].tolist() == [1, 2]
    assert table[["morf_rank_low", "morf_rank_high"]].to_numpy().tolist() == [[1, 2], [1, 2]]
    assert statistics.pairwise(study(a={"morf": [[1], [0], [0]]}, b={"morf": [[1], [1], [0]]}))["p"].isna().all()


# Invalid input


def test_a_curve_with_a_missing_point_is_an_error_that_names_it():
    points = study(good=GOOD, bad=BAD)
    del points[Point("bad", "lerf", "linear", "no-retrain", 0.2, 0)]
    with pytest.raises(
        ShapeError, match=r"bad has no predictions at fraction 0\.2, seed 0 \(no-retrain · lerf · linear\)"
    ):
        statistics.ranking(points)


def test_orders_with_different_fractions_have_no_combined_score():
    points = {point: each for point, each in study(good=GOOD).items() if point.order == "morf" or point.fraction < 0.4}
    with pytest.raises(ShapeError, match="needs the same fractions and seeds in both orders"):
        statistics.ranking(points)


def test_a_curve_that_does_not_fit_its_fractions_is_an_error():
    with pytest.raises(ShapeError, match="2 values does not fit 3 fractions"):
        statistics.area(np.ones(2), FRACTIONS)
    with pytest.raises(InputError, match="need fraction 0"):
        statistics.aopc(np.ones(2), (0.1, 0.2))


def test_predictions_on_different_images_are_an_error_that_names_both_methods():
    points = study(good=GOOD, bad=BAD)
    points[Point("bad", "lerf", "linear", "no-retrain", 0.4, 0)] = prediction([0] * 4, ids=[0, 1, 2, 9])
    for table in (statistics.ranking, statistics.curves, statistics.pairwise, statistics.agreement):
        with pytest.raises(
            InputError, match=r"bad \(lerf · linear, fraction 0.4\) and good were evaluated on different"
        ):
            table(points)


def test_a_single_method_has_a_ranking_but_no_pairs():
    assert statistics.ranking(study(only=GOOD))["srg_rank"].tolist() == [1]
    with pytest.raises(InputError, match=r"needs 2 methods .*: only"):
        statistics.pairwise(study(only=GOOD))


def test_a_method_that_was_not_evaluated_in_both_orders_is_not_ranked():
    points = study(good=GOOD, bad=BAD, half={"morf": BAD["morf"]})
    table = statistics.ranking(points).set_index("method")
    assert list(table.index) == ["good", "bad", "half"]  # the method without a rank comes last
    assert table.loc["half", ["srg", "srg_low", "lerf"]].isna().all()
    assert table.loc["half", "srg_rank"] is pd.NA
    assert table.loc["half", "morf_rank"] == 2
    pairs = statistics.pairwise(points)
    short = short_ranking(table.reset_index(), statistics.standings(table.reset_index(), pairs, (), 0.02))
    assert short.iloc[-1].tolist() == ["–", "half", "–", "0.938", "–"]
    warned = statistics.warnings(points, statistics.ranking(points), statistics.pairwise(points))
    assert "half was not evaluated in all orders" in warned.loc[warned["kind"] == "gap", "text"].item()


def test_no_predictions_no_images_nan_and_unknown_values_are_errors():
    with pytest.raises(InputError, match="no predictions"):
        statistics.ranking({})
    with pytest.raises(InputError, match="no images"):
        statistics.ranking({Point("m", "morf", "linear", "no-retrain", 0.0, 0): prediction([])})
    with pytest.raises(InputError, match="value='loss'"):
        statistics.ranking(study(good=GOOD), value="loss")
    broken = {point: prediction([1, 1], [np.nan, 1]) for point in study(m={"morf": GOOD["morf"]})}
    with pytest.raises(InputError, match=r"m .*a probability is NaN"):
        statistics.curves(broken)
