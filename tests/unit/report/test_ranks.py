"""What charts share: who is emphasized, ranks by order and imputer, labels that do not cover each other."""

import numpy as np
import pandas as pd
import pytest

from predictions import curve_study
from roadworthy import statistics
from roadworthy.report.emphasis import best_and_worst, blind_controls, emphasized
from roadworthy.report.labels import spread
from roadworthy.report.ranks import Agreement, RankPanel, rank_panels


def study():
    """Three methods. With `fixed` LeRF reverses the MoRF ranking, with `linear` it repeats it; c and d tie in MoRF."""
    morf = {m: {0.2: v, 0.4: v} for m, v in {"a": 0.2, "b": 0.4, "c": 0.6, "d": 0.6}.items()}
    lerf = {m: {0.2: v, 0.4: v} for m, v in {"a": 0.9, "b": 0.7, "c": 0.5, "d": 0.4}.items()}
    reverse = {m: {0.2: v, 0.4: v} for m, v in {"a": 0.4, "b": 0.5, "c": 0.7, "d": 0.9}.items()}
    control = {"random": {0.2: 0.5, 0.4: 0.5}}
    return curve_study(
        {
            ("morf", "linear"): morf | control,
            ("lerf", "linear"): lerf | control,
            ("morf", "fixed"): morf | control,
            ("lerf", "fixed"): reverse | control,
        }
    )


@pytest.fixture(scope="module")
def ranking():
    return statistics.ranking(study(), ["random"])


def test_ranks_count_methods_only_and_ties_have_two_places(ranking):
    linear = rank_panels(ranking, pd.DataFrame(), ("no-retrain", "linear"))[-1]
    # random would be third in MoRF (.5) and LeRF; it has no rank here. c and d share rank 3; c is better by SRG.
    assert [tuple(row) for row in linear.rows] == [
        ("a", 1, 1, 1, 1),
        ("b", 2, 2, 2, 2),
        ("c", 3, 3, 3, 3),
        ("d", 3, 4, 4, 4),
    ]


def test_the_setting_of_the_conclusion_comes_last(ranking):
    for preferred, imputers in (("linear", ["fixed", "linear"]), ("fixed", ["linear", "fixed"])):
        panels = rank_panels(ranking, pd.DataFrame(), ("no-retrain", preferred))
        assert [panel.imputer for panel in panels] == imputers


def test_panels_hold_the_agreement_of_their_own_setting_in_both_pairings(ranking):
    fixed, linear = rank_panels(ranking, statistics.agreement_intervals(study(), ["random"]), ("no-retrain", "linear"))
    # Ranks of the MoRF side are 1, 2, 3.5, 3.5: Spearman with 1, 2, 3, 4 is 4.5 / sqrt(4.5 · 5) = .949, reversed −.949
    # In the pairing "kept", .2 would be compared with .8, which was not evaluated.
    assert fixed.agreement["removed"].value == pytest.approx(-np.sqrt(0.9))
    assert linear.agreement["removed"].value == pytest.approx(np.sqrt(0.9))
    assert set(linear.agreement) == {"removed"}
    assert linear._replace(agreement={}).words == ""


def test_one_order_or_one_method_has_no_panel(ranking):
    morf = {point: each for point, each in study().items() if point.order == "morf"}
    assert rank_panels(statistics.ranking(morf, ["random"]), pd.DataFrame()) == []
    assert rank_panels(ranking[ranking["method"].isin(["a", "random"])], pd.DataFrame()) == []


def test_agreement_is_worded_by_the_intervals_of_both_pairings_not_by_values():
    wide, unknown = Agreement(0.9, -0.1, 1.0), Agreement(0.9, float("nan"), float("nan"))
    high, low = Agreement(0.3, 0.1, 0.5), Agreement(-0.3, -0.5, -0.1)

    def words(**agreement):
        return RankPanel("no-retrain", "linear", (), agreement).words

    assert words(removed=wide) == words(kept=unknown, removed=wide) == "agreement is not established"
    assert words(kept=high, removed=high) == words(removed=high) == "the two orders agree"
    assert words(kept=low, removed=low) == "the two orders disagree"
    assert words(kept=high, removed=wide) == "the two orders agree by one of two pairings"
    assert words(kept=wide, removed=low) == "the two orders disagree by one of two pairings"


def ranked(names, controls, scores):
    return pd.DataFrame({"method": names, "control": [name in controls for name in names], "srg": scores})


def test_three_methods_the_best_blind_control_and_random_are_emphasized():
    controls = ("a, blurred", "edges", "center", "random")
    block = ranked(
        ["a", "a, blurred", "b", "edges", "center", "c", "d", "random", "e"],
        controls,
        [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.0, np.nan],
    )
    assert emphasized(block, copies=["a, blurred"]) == ("a", "b", "c", "edges", "random")
    assert blind_controls(block, copies=["a, blurred"]) == ["edges", "center", "random"]
    assert best_and_worst(block) == ("a", "d")  # e has no score


def test_one_method_without_controls_is_best_and_worst():
    block = ranked(["a"], (), [0.5])
    assert (emphasized(block), best_and_worst(block), blind_controls(block)) == (("a",), ("a",), [])


def test_labels_keep_their_order_and_their_distance_within_the_axis():
    generator = np.random.default_rng(0)
    for count in (1, 2, 9, 30):
        wanted = generator.uniform(0, 1, count)
        placed = np.array(spread(wanted.tolist(), 0.05, 0, 1))
        assert placed.min() >= 0
        assert placed.max() <= 1 + 1e-6
        assert (np.argsort(placed, kind="stable") == np.argsort(wanted, kind="stable")).all()
        # 30 labels do not fit at .05: they share the axis evenly
        assert np.diff(np.sort(placed)).min(initial=1) >= min(0.05, 1 / max(1, count - 1)) - 1e-6
    assert spread([], 0.1, 0, 1) == []
