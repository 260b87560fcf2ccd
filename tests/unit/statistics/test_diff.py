"""Differences between two runs, on studies whose numbers are derived by hand."""

import numpy as np
import pytest

from predictions import BAD, GOOD, endurance_study, study
from roadworthy.core.errors import InputError
from roadworthy.core.results import Predictions
from roadworthy.statistics import diff, paired_comparisons
from roadworthy.statistics.scores import Block, BlockKey, blocks


def rows(table, **wanted):
    for column, value in wanted.items():
        table = table[table[column] == value]
    return table


def with_ids(predictions, ids, labels=None):
    return {
        point: Predictions(np.asarray(ids), each.labels if labels is None else labels, each.predicted, each.probability)
        for point, each in predictions.items()
    }


def test_a_run_compared_with_itself_has_not_changed():
    run = endurance_study(a=(0.2, 0.6), b=(0.4, 0.5))
    table = diff(run, run)
    assert set(table["change"]) == {"none"}
    assert (table[["difference", "low", "high"]] == 0).all(axis=None)
    assert (table["rank_before"] == table["rank_after"]).all()
    assert table["paired"].all()
    assert len(table) == 2 * 3  # two methods; srg, morf, lerf


def test_two_methods_that_swap_places_swap_scores_and_ranks():
    before, after = study(x=GOOD, y=BAD), study(x=BAD, y=GOOD)
    table = diff(before, after)
    x = rows(table, method="x", score="morf").iloc[0]
    # GOOD: accuracies 1, 1/4, 0, trapezoid (1/2 + 1/4 + 0)/2 = .375; BAD: 1, 1, 3/4: (1/2 + 1 + 3/8)/2 = .9375
    assert (x["before"], x["after"]) == (pytest.approx(0.375), pytest.approx(0.9375))
    assert x["difference"] == pytest.approx(0.5625)
    assert (x["rank_before"], x["rank_after"]) == (1, 2)
    srg = rows(table, method="y", score="srg").iloc[0]
    # BAD has GOOD's numbers with the orders swapped, so srg goes from −.5625 to +.5625
    assert srg["difference"] == pytest.approx(1.125)
    assert (srg["rank_before"], srg["rank_after"]) == (2, 1)


def test_better_and_worse_follow_the_direction_of_the_score():
    before, after = endurance_study(a=(0.2, 0.2), b=(0.4, 0.4)), endurance_study(a=(0.6, 0.6), b=(0.4, 0.4))
    table = rows(diff(before, after), method="a")
    # Images stay correct longer in both orders: worse in MoRF, better in LeRF.
    assert rows(table, score="morf")["change"].item() == "worse"
    assert rows(table, score="lerf")["change"].item() == "better"
    assert (table["difference"].abs() > 0.2)[table["score"] != "srg"].all()


def test_the_paired_interval_is_that_of_a_paired_comparison_with_a_corrected_level():
    before, after = endurance_study(a=(0.2, 0.6), seed=0), endurance_study(a=(0.25, 0.6), seed=1)
    row = rows(diff(before, after), method="a", score="morf").iloc[0]
    values = {name: blocks(run)[0].scores["morf"]["a"] for name, run in (("after", after), ("before", before))}
    block = Block(BlockKey("", ""), {"lerf": values})
    pair = paired_comparisons(block, confidence=1 - 0.05 / 3)["lerf"].differences  # three rows share the error
    assert row["paired"]
    assert (row["low"], row["high"]) == (pytest.approx(pair.low.item()), pytest.approx(pair.high.item()))


def test_the_order_of_the_images_does_not_matter():
    before, after = endurance_study(a=(0.2, 0.6), seed=0), endurance_study(a=(0.4, 0.6), seed=1)
    reversed_images = {
        point: Predictions(each.ids[::-1], each.labels[::-1], each.predicted[::-1], each.probability[::-1])
        for point, each in after.items()
    }
    expected, table = diff(before, after), diff(before, reversed_images)
    assert table["paired"].all()
    for column in ("low", "high"):
        assert table[column].tolist() == pytest.approx(expected[column].tolist())


def test_runs_on_other_images_are_compared_unpaired_with_a_wider_interval():
    # The runs are identical: paired, they do not differ on any image. Ids move by 8, labels repeat after 4.
    before, after = endurance_study(a=(0.3, 0.6), seed=0), endurance_study(a=(0.3, 0.6), seed=0)
    other = with_ids(after, np.arange(len(next(iter(before.values())))) + 8)
    paired, unpaired = (rows(diff(before, run), score="lerf").iloc[0] for run in (after, other))
    assert not unpaired["paired"]
    assert unpaired["high"] - unpaired["low"] > paired["high"] - paired["low"]


def test_images_with_the_same_id_but_other_labels_belong_to_another_data_set():
    before = endurance_study(a=(0.3, 0.6), seed=0)
    other = with_ids(before, np.arange(400), np.roll(next(iter(before.values())).labels, 1))
    with pytest.raises(InputError, match="400 of 400 images with the same id have other labels"):
        diff(before, other)
    # Without labels, predictions stand in for them: another model, another label.
    assert not diff(before, other, unlabeled=True)["paired"].any()


def test_the_unpaired_interval_adds_the_arms_of_both_in_quadrature():
    before = endurance_study(a=(0.3, 0.6), seed=0)
    after = with_ids(endurance_study(a=(0.5, 0.6), seed=1), np.arange(400) + 1000)
    row = rows(diff(before, after, confidence=0.85), score="morf").iloc[0]
    values = [blocks(run)[0].scores["morf"]["a"] for run in (before, after)]
    # Three rows share the error: 95 % each. Student's t at 399 degrees of freedom is 1.966.
    half = 1.966 * np.sqrt(sum(scores.var(ddof=1) / 400 for scores in values))
    assert row["difference"] - row["low"] == pytest.approx(half, rel=1e-3)
    assert row["high"] - row["difference"] == pytest.approx(half, rel=1e-3)


def test_runs_that_do_not_differ_are_rarely_called_changed():
    called = 0
    for seed in range(60):
        before = endurance_study(images=100, seed=2 * seed, a=(0.3, 0.6), b=(0.4, 0.6))
        after = endurance_study(images=100, seed=2 * seed + 1, a=(0.3, 0.6), b=(0.4, 0.6))
        called += diff(before, after)["change"].isin(["better", "worse"]).any()
    # At most 5 % of studies may have a changed row: 3 of 60 are expected; 9 or more have probability .004.
    assert called <= 8


def test_a_curve_in_only_one_run_is_named_and_does_not_change_ranks():
    before = endurance_study(a=(0.2, 0.6), b=(0.4, 0.5))
    after = endurance_study(a=(0.2, 0.6), b=(0.4, 0.5), best=(0.05, 0.7))
    table = diff(before, after)
    only = rows(table, change="only after")
    assert only[["method", "score"]].to_numpy().tolist() == [["best", "morf"], ["best", "lerf"]]
    both = table[table["rank_before"].notna()]
    assert set(both["method"]) == {"a", "b"}
    assert (both["rank_before"] == both["rank_after"]).all()
    assert set(diff(after, before)["change"]) >= {"only before"}


def test_scores_use_the_fractions_that_both_runs_have():
    run = endurance_study(a=(0.2, 0.6))
    shorter = {point: each for point, each in run.items() if point.fraction != 0.75}
    table = diff(run, shorter)
    assert (table["difference"] == 0).all()


def test_runs_with_nothing_in_common_are_an_error_that_names_both():
    with pytest.raises(InputError, match=r"nothing in common: one has x .*the other y"):
        diff(study(x=GOOD), study(y=GOOD))
    without_zero = {point: each for point, each in study(x=GOOD).items() if point.fraction != 0}
    with pytest.raises(InputError, match="a score needs 0"):
        diff(study(x=GOOD), without_zero)
