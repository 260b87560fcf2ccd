"""Curves, scores, ranks, pairs, warnings and the paragraph, against numbers worked out by hand."""

import numpy as np
import pandas as pd
import pytest
from predictions import BAD, FRACTIONS, GOOD, curve_study, endurance_study, prediction, study
from scipy import stats

from roadworthy import statistics
from roadworthy.core.errors import InputError, ShapeError
from roadworthy.core.results import Point, Predictions
from roadworthy.report.tables import short_ranking
from roadworthy.statistics.contest import Contest, Duels
from roadworthy.statistics.intervals import Variance, unanimous
from roadworthy.statistics.pairs import images_needed

# Curves


def test_curves_hold_accuracy_probability_and_wilsons_interval():
    curves = statistics.curves(study(good=GOOD)).set_index(["order", "fraction"])
    row = curves.loc[("morf", 0.2)]
    assert row["accuracy"] == 0.25
    # Wilson for 1 of 4 at 95 %: (0.25 + z²/8 ∓ z·sqrt(.25·.75/4 + z²/64)) / (1 + z²/4) with z = 1.95996
    assert row["low"] == pytest.approx(0.0456, abs=1e-4)
    assert row["high"] == pytest.approx(0.6994, abs=1e-4)
    assert list(statistics.curves(study(good=GOOD)).columns) == [
        "method", "order", "imputer", "evaluator", "fraction", "accuracy", "probability", "low", "high",
        "probability_low", "probability_high",
    ]  # fmt: skip


def test_seeds_are_averaged_image_by_image():
    both = {
        Point("m", "morf", "linear", "no-retrain", fraction, seed): prediction(row)
        for seed, rows in ((0, [[1, 1], [1, 0]]), (1, [[1, 1], [0, 0]]))
        for fraction, row in zip((0.0, 0.5), rows, strict=True)
    }
    curves = statistics.curves(both).set_index("fraction")
    assert curves.loc[0.5, "accuracy"] == 0.25


def test_per_image_values_are_one_row_per_dot_and_image():
    frame = statistics.per_image(study(good=GOOD))
    assert len(frame) == 2 * 3 * 4
    assert list(frame.columns) == [
        "method", "order", "imputer", "evaluator", "fraction", "seed", "id", "label", "predicted", "probability",
    ]  # fmt: skip
    assert isinstance(frame, pd.DataFrame)


# Maps and intervals


def test_areas_srg_and_aopc_are_those_of_the_definition():
    table = statistics.ranking(study(good=GOOD, bad=BAD)).set_index("method")
    # good, MoRF: 1, .25, 0 at 0, .2, .4: trapezoid (.625·.2 + .125·.2)/.4 = .375; losses .75 and 1: mean .875
    # good, LeRF: 1, 1, .75: (.2 + .175)/.4 = .9375; losses 0 and .25: mean .125
    assert table.loc["good", ["morf", "lerf", "srg"]].tolist() == pytest.approx([0.375, 0.9375, 0.5625])
    assert table.loc["good", ["morf_aopc", "lerf_aopc"]].tolist() == pytest.approx([0.875, 0.125])
    assert table.loc["bad", "srg"] == pytest.approx(-0.5625)
    assert list(table.index) == ["good", "bad"]


def test_scores_of_probability_come_on_request():
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
    # Whatever the direction, rank 1 is the better method.
    assert (long.loc[long["method"] == "good", "rank"] == 1).all()
    assert list(long.columns) == [
        "method", "control", "imputer", "evaluator", "score", "value", "low", "high", "rank", "rank_low", "rank_high",
        "direction",
    ]  # fmt: skip


def test_few_seeds_count_by_students_t():
    # Two runs at 0 and 1, the same on all images: standard error 1/2, t with 1 degree of freedom 12.706.
    assert statistics.mean_interval(np.array([[0.0, 0, 0], [1, 1, 1]])) == pytest.approx(
        (0.5 - 6.353, 0.5 + 6.353), abs=1e-3
    )
    # Images and seeds: half-widths add as squares. Image means .5 and 1.5: 12.706·.5; run means .5 and 1.5: the same.
    low, high = statistics.mean_interval(np.array([[0.0, 1.0], [1.0, 2.0]]))
    assert (high - low) / 2 == pytest.approx(np.sqrt(2) * 6.353, abs=1e-3)


def test_the_seeds_of_a_judge_that_trains_widen_the_intervals_those_of_a_fixed_model_do_not():
    # Between the two runs every method gains the same: for a fixed model that is noise of the images.
    rows = {0: GOOD, 1: {order: [[1] * 4] * 3 for order in ("morf", "lerf")}}
    widths = {}
    for evaluator in ("no-retrain", "retrain"):
        points = {
            point._replace(seed=seed): one
            for seed, row in rows.items()
            for point, one in study(evaluator, m=row).items()
        }
        table = statistics.ranking(points)
        widths[evaluator] = float((table["morf_high"] - table["morf_low"]).item())
    assert widths["retrain"] > widths["no-retrain"]


def test_a_score_on_which_all_images_agree_still_has_an_interval():
    table = statistics.ranking(study(m={"morf": [[1] * 100, [0] * 100, [0] * 100]}))
    # Every area is .25. If more than 1 − .025^(1/100) = 3.62 % of all images were otherwise, 100 would hardly agree:
    # from .25 − .0362·.25 to .25 + .0362·.75.
    assert table[["morf", "morf_low", "morf_high"]].iloc[0].tolist() == pytest.approx([0.25, 0.2409, 0.2772], abs=1e-4)
    # For a share this is Clopper and Pearson's interval.
    exact = stats.binomtest(100, 100).proportion_ci(0.95, method="exact")
    assert unanimous(1.0, 100, (0.0, 1.0), 0.05) == pytest.approx((exact.low, exact.high))


def test_one_image_has_scores_but_no_intervals():
    table = statistics.ranking(study(a={"morf": [[1], [0], [0]]}, b={"morf": [[1], [1], [0]]})).set_index("method")
    assert table.loc["a", "morf"] == 0.25
    assert table[["morf_low", "morf_high"]].isna().all(axis=None)
    assert table["morf_rank"].tolist() == [1, 2]
    assert table[["morf_rank_low", "morf_rank_high"]].to_numpy().tolist() == [[1, 2], [1, 2]]
    assert statistics.pairs(study(a={"morf": [[1], [0], [0]]}, b={"morf": [[1], [1], [0]]}))["p"].isna().all()


# Ranks, pairs, groups


def test_equal_methods_share_a_rank_and_cannot_be_told_apart():
    table = statistics.ranking(study(one=GOOD, two=GOOD)).set_index("method")
    assert table["srg_rank"].tolist() == [1, 1]
    assert table["srg_rank_low"].tolist() == [1, 1]
    assert table["srg_rank_high"].tolist() == [2, 2]
    assert table["groups"].tolist() == ["a", "a"]
    pair = statistics.pairs(study(one=GOOD, two=GOOD)).iloc[0]
    assert (pair["difference"], pair["p"], pair["probability"], pair["wins"]) == (0, 1, 0.5, 0.5)
    assert np.isinf(pair["images_needed"])


def test_pairs_are_tested_on_the_same_images():
    pair = statistics.pairs(study(bad=BAD, good=GOOD)).iloc[0]
    # Per image srg of good: .25, .75, .75, .5, of bad the negatives: differences .5, 1.5, 1.5, 1: mean 1.125, standard
    # deviation sqrt(.6875/3) = .47871, standard error .23936, t = 4.7001 with 3 degrees of freedom: p = .0182.
    assert (pair["method_a"], pair["method_b"]) == ("good", "bad")
    assert pair["difference"] == pytest.approx(1.125)
    assert pair["p"] == pair["p_holm"] == pytest.approx(0.0182, abs=1e-4)
    # One pair alone: Student's interval, 1.125 ∓ 3.1824 · .23936.
    assert (pair["low"], pair["high"]) == pytest.approx((0.3632, 1.8868), abs=2e-3)
    assert pair["separated"]
    assert pair["wins"] == 1
    assert pair["probability"] > 0.99
    assert list(statistics.pairs(study(bad=BAD, good=GOOD)).columns) == statistics.PAIR_COLUMNS


def test_where_low_is_good_the_lower_area_is_the_better_one():
    points = {
        point: one for point, one in endurance_study(low=(0.2, 0.5), high=(0.6, 0.5)).items() if point.order == "morf"
    }
    pair = statistics.pairs(points).iloc[0]
    assert (pair["score"], pair["method_a"], pair["method_b"]) == ("morf", "low", "high")
    assert pair["low"] > 0
    table = statistics.ranking(points).set_index("method")
    assert table[["morf_rank", "morf_rank_low", "morf_rank_high"]].to_numpy().tolist() == [[1, 1, 1], [2, 2, 2]]


def test_a_tie_is_an_interval_within_the_margin():
    points = endurance_study(images=100, one=(0.3, 0.7), two=(0.3, 0.7))
    rule = statistics.Stopping(level=0.95, margin=2.0, pairs=1)
    found = statistics.pairs(points, stopping=rule).iloc[0]
    widest = max(-found["low"], found["high"])
    assert found["tie"]
    for margin, tie in ((1.01 * widest, True), (0.99 * widest, False)):
        assert statistics.pairs(points, stopping=rule._replace(margin=margin))["tie"].item() == tie
    # More pairs share the same error: wider.
    assert statistics.pairs(points, stopping=rule._replace(pairs=50))["high"].item() > found["high"]


def duels(p, difference=0.1, seeds=0.0):
    first, second = np.triu_indices(3, k=1)
    ones = np.ones(3)
    variance = Variance(0.0004 * ones, seeds * ones, (99, 1))
    return Duels(first, second, difference * ones, -ones, ones, np.asarray(p), ones, ones, variance, tests=1)


def test_groups_are_the_largest_sets_that_no_test_separates():
    # Holm at 5 %: 3 · .001 separates x and z; 2 · .2 separates nothing more. y goes with both.
    contest = Contest(("x", "y", "z"), np.array([3.0, 2, 1]), *np.zeros((2, 3)), True, duels([0.5, 0.001, 0.2]), 100)
    assert statistics.groups(contest) == [["x", "y"], ["y", "z"]]


def test_images_needed_follow_from_difference_and_spread():
    # Standard error .02 on 100 images: spread .2 per image. To see .1 at 5 % with 80 % power the standard error must be
    # .1/(1.95996 + .84162): ((2.80158 · .2)/.1)² = 31.4 images.
    assert images_needed(duels([0.5] * 3), 100, 0.95).tolist() == [32] * 3
    # .05²/2.80158² = .000318 is less than seeds alone contribute: more images cannot help.
    assert np.isinf(images_needed(duels([0.5] * 3, difference=0.05, seeds=0.0004), 100, 0.95)).all()


def test_one_clear_winner_and_two_alike():
    table = statistics.ranking(endurance_study(best=(0.2, 0.8), one=(0.45, 0.55), two=(0.45, 0.55))).set_index("method")
    assert table.loc["best", ["srg_rank", "srg_rank_low", "srg_rank_high"]].tolist() == [1, 1, 1]
    assert table.loc[["one", "two"], "srg_rank_low"].tolist() == [2, 2]
    assert table.loc[["one", "two"], "srg_rank_high"].tolist() == [3, 3]
    assert table["groups"].to_dict() == {"best": "a", "one": "b", "two": "b"}


# Bad input


def test_a_curve_with_a_missing_point_is_an_error_that_names_it():
    points = study(good=GOOD, bad=BAD)
    del points[Point("bad", "lerf", "linear", "no-retrain", 0.2, 0)]
    with pytest.raises(
        ShapeError, match=r"bad has no prediction at fraction 0\.2, seed 0 \(no-retrain · lerf · linear\)"
    ):
        statistics.ranking(points)


def test_orders_with_different_fractions_have_no_combined_score():
    points = {point: one for point, one in study(good=GOOD).items() if point.order == "morf" or point.fraction < 0.4}
    with pytest.raises(ShapeError, match="the combined score needs the same points in both orders"):
        statistics.ranking(points)


def test_a_curve_that_does_not_fit_its_fractions_is_an_error():
    with pytest.raises(ShapeError, match="2 values does not fit 3 fractions"):
        statistics.area(np.ones(2), FRACTIONS)
    with pytest.raises(InputError, match="need the point 0"):
        statistics.aopc(np.ones(2), (0.1, 0.2))


def test_verdicts_on_different_images_are_an_error_that_names_both_methods():
    points = study(good=GOOD, bad=BAD)
    points[Point("bad", "lerf", "linear", "no-retrain", 0.4, 0)] = prediction([0] * 4, ids=[0, 1, 2, 9])
    for table in (statistics.ranking, statistics.curves, statistics.pairs, statistics.agreement):
        with pytest.raises(
            InputError, match=r"bad \(lerf · linear, fraction 0.4\) and good were evaluated on different"
        ):
            table(points)


def test_one_method_has_a_ranking_but_no_pairs():
    assert statistics.ranking(study(only=GOOD))["srg_rank"].tolist() == [1]
    with pytest.raises(InputError, match="pairs need 2 methods evaluated in the same setting, here: only"):
        statistics.pairs(study(only=GOOD))


def test_a_method_that_was_not_judged_in_both_orders_is_an_open_gap():
    points = study(good=GOOD, bad=BAD, half={"morf": BAD["morf"]})
    table = statistics.ranking(points).set_index("method")
    assert list(table.index) == ["good", "bad", "half"]  # the one without a rank comes last
    assert table.loc["half", ["srg", "srg_low", "lerf"]].isna().all()
    assert table.loc["half", "srg_rank"] is pd.NA
    assert table.loc["half", "morf_rank"] == 2
    short = short_ranking(table.reset_index())
    assert short.iloc[-1].tolist() == ["–", "half", "–", "0.938", "–"]
    warned = statistics.warnings(points, statistics.ranking(points), statistics.pairs(points))
    assert "half was not evaluated in all orders" in warned.loc[warned["kind"] == "gap", "text"].item()


def test_no_verdicts_no_images_no_numbers_and_unknown_values_are_errors():
    with pytest.raises(InputError, match="no predictions"):
        statistics.ranking({})
    with pytest.raises(InputError, match="no images"):
        statistics.ranking({Point("m", "morf", "linear", "no-retrain", 0.0, 0): prediction([])})
    with pytest.raises(InputError, match="value='loss'"):
        statistics.ranking(study(good=GOOD), value="loss")
    broken = {point: prediction([1, 1], [np.nan, 1]) for point in study(m={"morf": GOOD["morf"]})}
    with pytest.raises(InputError, match=r"m .*a probability is NaN"):
        statistics.curves(broken)


# Warnings and the paragraph


def warned(points, controls=(), **facts):
    table = statistics.warnings(
        points, statistics.ranking(points, controls), statistics.pairs(points, controls), **facts
    )
    return table.set_index("kind")


def test_a_method_that_controls_beat_is_named_with_them():
    points = endurance_study(mine=(0.55, 0.45), random=(0.5, 0.5), edges=(0.4, 0.6), fine=(0.2, 0.8))
    found = warned(points, controls=("random", "edges"))
    assert list(found.index) == ["beaten by a control"]
    assert found["method"].item() == "mine"
    text = "Clearly beaten by the controls edges and random: mine. Controls know nothing of the model."
    assert found["text"].item() == text


@pytest.mark.parametrize(("ahead", "better"), [(0.012, "random"), (0.0, "mine")])
def test_a_method_level_with_a_control_is_named(ahead, better):
    points = endurance_study(mine=(0.5, 0.5), random=(0.5 - ahead, 0.5 + ahead), fine=(0.2, 0.8))
    pair = statistics.pairs(points).query("method_a != 'fine'").iloc[0]
    assert pair["method_a"] == better  # by chance, and not clearly
    assert pair["low"] < 0
    found = warned(points, controls=("random",))
    assert found["text"].tolist() == ["Not clearly ahead of the control random: mine."]


def test_a_blurred_copy_that_beats_its_method_and_an_inverse_that_does_are_named():
    points = endurance_study(a=(0.4, 0.6), a_blurred=(0.3, 0.7), b=(0.6, 0.4), b_inverted=(0.4, 0.6))
    found = warned(points, controls=("a blurred", "b inverted"))
    assert "Blurred, a clearly beats itself" in found.loc["blurred copy wins", "text"]
    assert "check the sign" in found.loc["beaten by its inverse", "text"]
    # That the blurred copy of a also beats b is no news about b.
    assert len(found) == 2


def test_constant_maps_and_ties_few_images_and_chance_are_said():
    ties = {"a": statistics.Ties(tied=0.8, constant=0.0), "b": statistics.Ties(tied=1.0, constant=1.0)}
    points = endurance_study(images=40, a=(0.2, 0.8), b=(0.5, 0.5))
    found = warned(points, ties=ties)
    assert found.loc["ties", "method"] == "a"
    assert "80%" in found.loc["ties", "text"]
    assert found.loc["constant maps", "method"] == "b"
    assert "Only 40 images" in found.loc["few images", "text"]
    # Four classes of 10 images each, 25 % by chance; 12 of 40 right: Wilson from 18 %, so not above it.
    guessed = np.arange(40) < 12
    chance = {
        point: verdict_of(guessed, points[point].labels) if point.fraction == 0 else one
        for point, one in points.items()
    }
    assert "the accuracy is 30%, not clearly above chance (25%)" in warned(chance).loc["near chance", "text"]


def verdict_of(correct, labels):
    return Predictions(
        np.arange(len(labels)), labels, np.where(correct, labels, (labels + 1) % 4), np.zeros(len(labels))
    )


def test_images_of_one_class_are_not_taken_for_chance():
    assert "near chance" not in warned(study(good=GOOD, bad=BAD), classes=10).index


def test_few_seeds_matter_where_the_judge_trains():
    assert "few seeds" not in warned(study(good=GOOD, bad=BAD)).index
    text = warned(study("retrain", good=GOOD, bad=BAD)).loc["few seeds", "text"]
    assert text.startswith("retrain was run with 1 seed")


def paragraph(points, controls=(), cautions=()):
    return statistics.summary(statistics.ranking(points, controls), statistics.pairs(points, controls), cautions)


def test_the_paragraph_says_who_won_and_how_sure_that_is():
    text = paragraph(study(mine=GOOD, other=BAD))
    assert text.startswith("Filled by linear: mine comes first on 4 images (LeRF − MoRF 0.562 [")
    assert text.endswith("]), clearly ahead of every other method (95% sure of all pairs at once).")


def test_the_paragraph_names_rivals_and_how_many_images_would_do():
    points = endurance_study(images=100, one=(0.30, 0.70), two=(0.32, 0.69))
    text, pair = paragraph(points), statistics.pairs(points).iloc[0]
    assert "not clearly behind it: two." in text
    assert f"It beats two with probability {pair['probability']:.0%}; about " in text
    assert "images would tell the two apart." in text
    assert "no number of images would tell the two apart" in paragraph(study(mine=GOOD, twin=GOOD))


def test_the_paragraph_ends_with_what_to_beware_of_and_a_control_never_wins():
    text = paragraph(study(random=GOOD, mine=BAD), controls=("random",), cautions=["Mind the gap."])
    assert "mine is the only method on 4 images" in text
    assert text.endswith("Beware: Mind the gap.")


def test_settings_are_named_where_there_are_several():
    points = endurance_study(a=(0.2, 0.8), random=(0.5, 0.5)) | endurance_study(
        a=(0.6, 0.4), random=(0.5, 0.5), imputer="fixed"
    )
    found = warned(points, controls=("random",))
    assert "Clearly beaten by the control random (fixed)" in found["text"].item()
    text = paragraph(
        curve_study({("morf", "linear"): {"a": {0.5: 0.1}}, ("morf", "fixed"): {"a": {0.5: 0.1}}}) | points
    )
    assert text.count("Filled by") == 2
