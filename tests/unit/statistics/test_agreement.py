"""Agreement between settings, against numbers derived by hand."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from predictions import GOOD, curve_study, endurance_study, prediction, study
from roadworthy import statistics
from roadworthy.core.errors import InputError
from roadworthy.core.results import Point


def test_agreement_orients_the_orders_and_pairs_fractions():
    morf = {"a": {0.1: 0.1, 0.9: 0.3}, "b": {0.1: 0.2, 0.9: 0.2}, "c": {0.1: 0.3, 0.9: 0.1}}
    lerf = {"a": {0.1: 0.9, 0.9: 0.1}, "b": {0.1: 0.8, 0.9: 0.2}, "c": {0.1: 0.7, 0.9: 0.3}}
    table = statistics.agreement(curve_study({("morf", "linear"): morf, ("lerf", "linear"): lerf}))
    by_pairing = table.set_index("pairing")
    # At .1 MoRF ranks a b c (low is good), at .9 c b a; LeRF at .1 a b c (high is good), at .9 c b a.
    # removed: +1 and +1; kept compares .1 with .9 and .9 with .1: −1 and −1. Fraction 0 is left out.
    for measure in ("spearman", "kendall"):
        assert by_pairing.loc["removed", measure] == pytest.approx(1)
        assert by_pairing.loc["kept", measure] == pytest.approx(-1)
    # Ranks 1 2 3 and 3 2 1: each value twice; ordinal distance² 4, 4 and 16. Observed: units (1,3) and (3,1), each
    # counted both ways: 4 · 16 = 64; expected 2·(4·4 + 4·4 + 4·16)/5 = 38.4: alpha = 1 − 64/38.4 = −.6667.
    assert by_pairing.loc["removed", "alpha"] == pytest.approx(1)
    assert by_pairing.loc["kept", "alpha"] == pytest.approx(-2 / 3)
    assert (table["fractions"] == 2).all()
    assert (table["methods"] == 3).all()


def test_runs_are_averaged_first_and_compared_per_run():
    # One fraction, three methods, MoRF against LeRF, two runs.
    # Run 0: MoRF .1 .2 .3 ranks a b c; LeRF .9 .8 .7 ranks a b c: +1.
    # Run 1: MoRF .1 .2 .3 ranks a b c; LeRF .5 .6 .9 ranks c b a: −1.
    # Per run: mean 0, standard error sqrt(2)/sqrt(2) = 1. Averaged first: LeRF .7 .7 .8 ranks c, then a and b tied:
    # MoRF ranks 1 2 3, LeRF 2.5 2.5 1: covariance −1.5, variances 2 and 1.5: −1.5/sqrt(3) = −.8660.
    def run(seed, lerf):
        morf = {"a": {0.5: 0.1}, "b": {0.5: 0.2}, "c": {0.5: 0.3}}
        return curve_study({("morf", "linear"): morf, ("lerf", "linear"): lerf}, evaluator="retrain", seed=seed)

    points = run(0, {"a": {0.5: 0.9}, "b": {0.5: 0.8}, "c": {0.5: 0.7}})
    points |= run(1, {"a": {0.5: 0.5}, "b": {0.5: 0.6}, "c": {0.5: 0.9}})
    row = statistics.agreement(points).set_index("pairing").loc["removed"]
    assert row["spearman"] == pytest.approx(-0.8660, abs=1e-4)
    assert row["spearman_runs"] == pytest.approx(0)
    assert row["spearman_runs_error"] == pytest.approx(1)
    assert row["runs"] == 2
    # tau-b, averaged first: pairs a–c and b–c discordant, a–b tied on one side: −2/sqrt(3 · 2) = −.8165.
    assert row["kendall"] == pytest.approx(-0.8165, abs=1e-4)
    assert row["kendall_runs"] == pytest.approx(0)


def test_runs_with_equal_averages_are_tied():
    # (0 + 0 + .3)/3 and (0 + .1 + .2)/3 differ in their last bit; the methods do not.
    points = {}
    for seed, (a, b) in enumerate(((0.0, 0.0), (0.0, 0.1), (0.3, 0.2))):
        tied = {"a": {0.5: a}, "b": {0.5: b}}
        ranked = {"a": {0.5: 0.1}, "b": {0.5: 0.2}}
        points |= curve_study({("morf", "linear"): tied, ("morf", "fixed"): ranked}, evaluator="retrain", seed=seed)
    assert statistics.agreement(points)["fractions"].item() == 0


def test_fraction_0_is_left_out_even_if_it_ranks():
    # Retrained models differ before removal; that ranks models, not maps.
    first = {"a": {0.0: 0.9, 0.5: 0.1}, "b": {0.0: 0.8, 0.5: 0.2}}
    second = {"a": {0.0: 0.8, 0.5: 0.1}, "b": {0.0: 0.9, 0.5: 0.2}}
    row = statistics.agreement(curve_study({("morf", "linear"): first, ("morf", "fixed"): second})).iloc[0]
    assert (row["fractions"], row["spearman"]) == (1, 1)


def test_an_evaluator_with_one_run_is_compared_with_every_run_of_another():
    morf = {"a": {0.5: 0.1}, "b": {0.5: 0.2}}
    swapped = {"a": {0.5: 0.2}, "b": {0.5: 0.1}}
    points = curve_study({("morf", "linear"): morf})
    points |= curve_study({("morf", "linear"): morf}, evaluator="retrain", seed=0)
    points |= curve_study({("morf", "linear"): swapped}, evaluator="retrain", seed=1)
    row = statistics.agreement(points).iloc[0]
    assert (row["evaluator_a"], row["evaluator_b"], row["runs"]) == ("no-retrain", "retrain", 2)
    assert row["spearman_runs"] == pytest.approx(0)  # +1 and −1
    assert np.isnan(row["spearman"])  # averaged, the two methods tie: no ranking
    assert row["fractions"] == 0


def test_all_settings_as_a_table_and_as_a_matrix():
    accuracies = {"a": {0.5: 0.1}, "b": {0.5: 0.2}, "c": {0.5: 0.4}}
    settings = {(order, imputer): accuracies for order in ("morf", "lerf") for imputer in ("fixed", "linear", "gain")}
    points = curve_study(settings) | curve_study(settings, evaluator="retrain")
    table = statistics.agreement(points)
    # The paper's 12 settings: 66 pairs, of which 6 · 6 have different orders and are listed twice.
    assert len(table) == 66 + 36
    matrix = statistics.agreement_matrix(table, "kendall", "kept")
    assert matrix.shape == (12, 12)
    assert (np.diag(matrix) == 1).all()
    assert matrix.equals(matrix.T)
    assert matrix.loc["no-retrain · morf · fixed", "retrain · morf · gain"] == 1
    assert matrix.loc["no-retrain · morf · fixed", "no-retrain · lerf · gain"] == -1
    assert list(table.columns) == [
        "evaluator_a", "order_a", "imputer_a", "model_a", "units_a", "evaluator_b", "order_b", "imputer_b", "model_b",
        "units_b", "pairing", "spearman", "kendall", "alpha", "fractions", "methods", "spearman_runs",
        "spearman_runs_error", "kendall_runs", "kendall_runs_error",
        "alpha_runs", "alpha_runs_error", "runs",
    ]  # fmt: skip
    with pytest.raises(InputError, match="measure='pearson'"):
        statistics.agreement_matrix(table, "pearson")


def test_agreement_leaves_out_controls_and_fractions_without_a_ranking():
    first = {"a": {0.5: 0.1}, "b": {0.5: 0.2}, "random": {0.5: 0.9}}
    flat = {"a": {0.5: 0.4}, "b": {0.5: 0.4}, "random": {0.5: 0.1}}
    table = statistics.agreement(
        curve_study({("morf", "linear"): first, ("morf", "fixed"): flat}), controls=("random",)
    )
    assert table[["spearman", "kendall", "alpha"]].isna().all(axis=None)
    assert table["fractions"].iloc[0] == 0


def test_methods_missing_in_one_setting_are_left_out_and_counted():
    first = {"a": {0.5: 0.1}, "b": {0.5: 0.2}, "c": {0.5: 0.3}}
    second = {"a": {0.5: 0.3}, "b": {0.5: 0.2}}
    row = statistics.agreement(curve_study({("morf", "linear"): first, ("morf", "fixed"): second})).iloc[0]
    assert (row["methods"], row["spearman"]) == (2, -1)
    alone = {"c": {0.5: 0.3}}
    row = statistics.agreement(curve_study({("morf", "linear"): first, ("morf", "fixed"): alone})).iloc[0]
    assert row["methods"] == 1
    assert np.isnan(row["spearman"])


def test_settings_with_different_fractions_are_compared_at_those_they_share():
    first = {"a": {0.1: 0.1, 0.5: 0.1}, "b": {0.1: 0.2, 0.5: 0.2}}
    second = {"a": {0.5: 0.3}, "b": {0.5: 0.4}}
    points = curve_study({("morf", "linear"): first}) | curve_study({("morf", "linear"): second}, evaluator="retrain")
    row = statistics.agreement(points).iloc[0]
    assert (row["fractions"], row["spearman"]) == (1, 1)


def test_agreement_of_one_method_is_an_error():
    with pytest.raises(InputError, match="at least 2 methods"):
        statistics.agreement(study(only=GOOD))


def test_spearman_gives_ties_their_mean_rank():
    # ranks 1 2.5 2.5 4 and 1 2 3 4: covariance 4.5, variances 4.5 and 5: 4.5/sqrt(22.5) = .9487
    assert statistics.spearman(np.array([1.0, 2, 2, 3]), np.array([1.0, 2, 3, 4])) == pytest.approx(0.948683, abs=1e-6)


def test_kendall_counts_pairs_tied_on_one_side_as_neither():
    # 6 pairs, 5 in the same order, 1 tied on the left: 5/sqrt(5 · 6) = .9129
    assert statistics.kendall(np.array([1.0, 2, 2, 3]), np.array([1.0, 2, 3, 4])) == pytest.approx(0.9129, abs=1e-4)


def test_krippendorffs_alpha_on_his_own_example():
    # "Computing Krippendorff's Alpha-Reliability" (2011): 4 observers, 12 units, missing data; ordinal alpha .815.
    nan = np.nan
    ratings = np.array(
        [
            [1, 2, 3, 3, 2, 1, 4, 1, 2, nan, nan, nan],
            [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, nan, 3],
            [nan, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, nan],
            [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, nan],
        ]
    )
    assert statistics.krippendorff(ratings) == pytest.approx(0.815, abs=5e-4)
    assert np.isnan(statistics.krippendorff(np.ones((2, 3))))


def test_overall_alpha_of_all_settings():
    accuracies = {"a": {0.5: 0.1}, "b": {0.5: 0.2}, "c": {0.5: 0.3}}
    swapped = {"a": {0.5: 0.1}, "b": {0.5: 0.3}, "c": {0.5: 0.2}}
    agree = curve_study({("morf", "linear"): accuracies, ("morf", "fixed"): accuracies})
    assert statistics.overall_alpha(agree) == 1
    # Ranks 1 2 3 and 1 3 2: observed 4 · 4 = 16, expected 38.4 as above: 1 − 16/38.4 = .5833.
    differ = curve_study({("morf", "linear"): accuracies, ("morf", "fixed"): swapped})
    assert statistics.overall_alpha(differ) == pytest.approx(0.5833, abs=1e-4)


def close_study(generator, agree, images=150, methods=8):
    """Methods whose true accuracies lie close together, in the same order in both settings (or in opposite ones).

    Accuracies .40, .41, … , .47 in LeRF; the standard error of the difference of two, on 150 images, is about .05.
    """
    merits = 0.4 + 0.01 * np.arange(methods)
    ease = generator.normal(size=images)

    def hits(accuracy):
        own = generator.normal(size=images)
        return 0.7 * ease + np.sqrt(0.51) * own < stats.norm.ppf(accuracy)

    settings = {"linear": merits, "fixed": merits if agree else merits[::-1]}
    return {
        Point(f"m{row}", "lerf", imputer, "no-retrain", fraction, 0): prediction(
            hits(accuracy) if fraction else np.ones(images)
        )
        for imputer, accuracies in settings.items()
        for row, accuracy in enumerate(accuracies)
        for fraction in (0.0, 0.5)
    }


@pytest.mark.parametrize("agree", [True, False])
def test_intervals_of_agreement_reach_the_truth_where_noise_hides_it(agree):
    # The true rank correlation is +1 or −1; noise brings the measured one near 0, and the percentile bootstrap held
    # the truth in none of these studies. 40 studies at 95 %: fewer than 34 hold in 2 of 1,000 cases.
    generator = np.random.default_rng(0)
    tables = [statistics.agreement_intervals(close_study(generator, agree)) for _ in range(40)]
    rows = pd.concat(tables)
    held = rows["high"] == 1 if agree else rows["low"] == -1
    assert abs(rows["spearman"].mean()) < 0.5
    assert held.sum() >= 34
    assert ((rows["low"] <= rows["spearman"]) & (rows["spearman"] <= rows["high"])).all()


def test_a_change_of_agreement_is_the_difference_of_two_agreements():
    good = endurance_study(300, a=(0.3, 0.7), b=(0.4, 0.6), c=(0.5, 0.5), d=(0.6, 0.4))
    swapped = endurance_study(300, imputer="fixed", a=(0.3, 0.4), b=(0.4, 0.5), c=(0.5, 0.6), d=(0.6, 0.7))
    points = good | swapped
    fixed, linear = (
        tuple(statistics.Setting("no-retrain", order, imputer) for order in ("morf", "lerf"))
        for imputer in ("fixed", "linear")
    )
    table = statistics.agreement(points).set_index(["order_a", "imputer_a", "order_b", "imputer_b", "pairing"])
    for pairing in ("removed", "kept"):
        expected = (
            table.loc[("morf", "linear", "lerf", "linear", pairing), "spearman"]
            - table.loc[("morf", "fixed", "lerf", "fixed", pairing), "spearman"]
        )
        change, low, high = statistics.agreement_change(points, fixed, linear, pairing)
        assert change == pytest.approx(expected)
        # MoRF and LeRF agree with one imputer and contradict each other with the other.
        assert 0 < low <= change <= high <= 2
    back, back_low, back_high = statistics.agreement_change(points, linear, fixed, "kept")
    assert back == pytest.approx(-change)
    assert back_low < back_high < 0
    assert statistics.agreement_change(points, fixed, fixed) == (0, 0, 0)


def test_a_change_leaves_out_controls_and_names_a_missing_setting():
    points = endurance_study(100, a=(0.3, 0.7), b=(0.5, 0.5), random=(0.9, 0.1))
    morf, lerf = (statistics.Setting("no-retrain", order, "linear") for order in ("morf", "lerf"))
    # a before b in MoRF and in LeRF, random last in both; in (morf, morf) everything agrees. Without controls: 1 → 1.
    assert statistics.agreement_change(points, (morf, lerf), (morf, morf), controls=("random",))[0] == 0
    with pytest.raises(InputError, match="retrain · morf · linear"):
        statistics.agreement_change(points, (morf, lerf), (morf._replace(evaluator="retrain"), lerf))
    with pytest.raises(InputError, match="pairing='both'"):
        statistics.agreement_change(points, (morf, lerf), (morf, lerf), "both")


def test_training_runs_that_differ_widen_the_interval_of_agreement():
    def points(shift):
        table = {"a": 0.3, "b": 0.4, "c": 0.5, "d": 0.6}
        runs = {}
        for seed, sign in enumerate((1, -1, 1, -1)):
            moved = {m: {0.5: a + sign * shift * (1 if m in "ac" else -1)} for m, a in table.items()}
            fixed = {m: {0.5: a} for m, a in table.items()}
            settings = {("morf", "linear"): moved, ("morf", "fixed"): fixed}
            runs |= curve_study(settings, evaluator="retrain", seed=seed, images=2000)
        return runs

    def width(shift):
        row = statistics.agreement_intervals(points(shift)).iloc[0]
        return row["high"] - row["low"]

    # 2,000 images alone separate accuracies .1 apart; runs that move them by ± .25 do not.
    assert width(0.0) == 0
    assert width(0.25) > 0.5


def test_an_agreement_that_no_resample_changes_has_no_width():
    apart = {"a": {0.5: 0.0}, "b": {0.5: 1.0}}
    opposite = {"a": {0.5: 1.0}, "b": {0.5: 0.0}}
    points = curve_study({("morf", "linear"): apart, ("morf", "fixed"): apart, ("lerf", "linear"): opposite})
    table = statistics.agreement_intervals(points)
    # a is best in all three settings, whichever images are drawn.
    assert (table[["spearman", "low", "high"]] == 1).all(axis=None)


def test_more_images_narrow_the_interval_of_agreement():
    def width(images):
        points = endurance_study(images, a=(0.3, 0.6), b=(0.35, 0.55), c=(0.4, 0.5), d=(0.45, 0.45))
        row = statistics.agreement_intervals(points).iloc[0]
        return row["high"] - row["low"]

    assert width(1600) < width(50) / 2


def test_each_draw_takes_the_same_images_in_all_settings():
    points = endurance_study(40, a=(0.3, 0.6), b=(0.32, 0.6), c=(0.34, 0.6))
    again = {point._replace(imputer="fixed"): prediction for point, prediction in points.items()}
    table = statistics.agreement_intervals({**points, **again})
    twins = table[(table["order_a"] == table["order_b"]) & (table["imputer_a"] != table["imputer_b"])]
    # The same predictions under two names agree in every draw; independent draws would rank close methods differently.
    assert len(twins) == 2
    assert (twins[["low", "high"]] == 1).all(axis=None)
