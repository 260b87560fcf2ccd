"""The benchmark of benchmarks: settings through `compare`, and tables with intervals over draws."""

import numpy as np
import pandas as pd
import pytest

import roadworthy as rw
from roadworthy.evaluation.experiment import EVALUATORS
from roadworthy.experiments.self_test import truth_test
from roadworthy.experiments.self_test.recovered_order import ALL
from roadworthy.experiments.self_test.truth_test import BENCHMARKS, Benchmark, scores_of
from roadworthy.statistics import mean_interval, share_interval
from roadworthy.training.recipe import Recipe


def handmade(whole_of):
    """Two maps in one or more worlds: `whole_of[benchmark][world]` says in which draws the better one wins."""
    rows = [
        (benchmark, world, draw, name, float(score))
        for benchmark, worlds in whole_of.items()
        for world, right in worlds.items()
        for draw, good in enumerate(right)
        for name, score in (("exact", good), ("inverted", 1 - good))
    ]
    table = pd.DataFrame(rows, columns=["benchmark", "world", "draw", "map", "score"])
    return rw.TruthTest(table, dict.fromkeys(table["world"], (("exact",), ("inverted",))))


def test_scores_are_those_of_compare_turned_so_that_higher_is_better():
    world = rw.truth.distractor(seed=2, images=24)
    group = [Benchmark("a", "fixed"), Benchmark("b", "fixed", score="morf", value="probability")]
    found = {(one.name, name): score for one, (name, score) in scores_of(world, group)}
    comparison = rw.compare(
        world.model,
        world.data,
        world.maps,
        imputers="fixed",
        fractions=truth_test.FRACTIONS,
        controls=(),
        progress=False,
    )
    accuracy = comparison.ranking().set_index("method")
    probability = comparison.ranking("probability").set_index("method")
    for name in world.maps:
        assert found["a", name] == pytest.approx(accuracy.loc[name, "srg"])
        assert found["b", name] == pytest.approx(-probability.loc[name, "morf"])


def test_ideal_removal_recovers_the_order_of_an_easy_world():
    """With 200 images the smallest true difference, of constant and distractor, is 2 to 3 standard errors."""
    found = rw.truth_test(["distractor"], ["ideal, probability"], draws=3, images=200, progress=False)
    assert (found.recoveries()["pairs"] >= 20 / 21 - 1e-9).all()


def test_a_benchmark_that_ranks_backwards_is_noticed():
    found = rw.truth_test(["absence"], ["ideal"], draws=2, images=40, progress=False)
    backwards = rw.TruthTest(found.scores.assign(score=-found.scores["score"]), found.orders)
    assert found.table()["pairs"].iloc[0] > 0.9
    assert backwards.table()["pairs"].iloc[0] < 0.1


def test_every_setting_of_the_package_is_among_the_benchmarks():
    assert {one.evaluator for one in BENCHMARKS} == set(EVALUATORS)
    assert {one.imputer for one in BENCHMARKS} >= {"linear", "fixed", "blur", "image-mean"}
    assert {(one.score, one.value) for one in BENCHMARKS} >= {("morf", "probability"), ("lerf", "probability")}
    assert len({one.name for one in BENCHMARKS}) == len(BENCHMARKS)


def test_settings_that_train_run_through_the_same_engine(monkeypatch):
    quick = Recipe(epochs=2, batch_size=64, lr=0.001, select="last")
    monkeypatch.setattr(truth_test, "RECIPES", dict.fromkeys(EVALUATORS, quick))
    monkeypatch.setattr(truth_test, "POINT_FRACTIONS", (0.5,))
    monkeypatch.setattr(truth_test, "FRACTIONS", (0.5,))
    names = ["ROAD", "ROAR", "KAR", "warm-start, linear", "fine-tuned, fixed"]
    found = rw.truth_test(["gate"], names, draws=2, trained_draws=1, images=16, progress=False)
    draws = found.recoveries().groupby("benchmark", sort=False).size()
    # Those that train have one draw, the others two; the order is that of the request.
    assert draws.to_dict() == {"ROAD": 2, "ROAR": 1, "KAR": 1, "warm-start, linear": 1, "fine-tuned, fixed": 1}


def test_draws_differ_and_a_seed_repeats_them():
    options = {"worlds": ["additive"], "benchmarks": ["fixed"], "images": 16, "progress": False}
    both, second = rw.truth_test(draws=2, **options), rw.truth_test(draws=1, seed=1, **options)
    scores = both.scores.groupby("draw")["score"].apply(list)
    assert scores[0] != scores[1]
    assert scores[1] == second.scores["score"].tolist()


def test_without_draws_that_train_their_settings_are_left_out():
    found = rw.truth_test(["gate"], ["ROAR", "fixed"], draws=1, trained_draws=0, images=8, progress=False)
    assert set(found.scores["benchmark"]) == {"fixed"}


def test_the_table_has_intervals_over_draws_and_a_mean_over_worlds():
    found = handmade({"a": {"w": [1, 1, 1, 0], "v": [1, 0, 1, 0]}})
    table = found.table().set_index("world")
    assert table.loc["w", "whole"] == 0.75
    assert (table.loc["w", "whole_low"], table.loc["w", "whole_high"]) == share_interval(np.array([[1.0, 1, 1, 0]]))
    # Both maps in the right order: 1 of 1 pairs and Spearman 1; else 0 and −1.
    assert table.loc["w", ["pairs", "spearman"]].tolist() == [0.75, 0.5]
    low, high = mean_interval(np.array([1.0, 1, 1, 0]))
    assert table.loc["w", ["pairs_low", "pairs_high"]].tolist() == [max(low, 0.0), min(high, 1.0)]
    # Draw by draw the means over worlds are 1, ½, 1, 0.
    low, high = mean_interval(np.array([1.0, 0.5, 1, 0]))
    assert table.loc[ALL, "pairs"] == pytest.approx(0.625)
    assert table.loc[ALL, ["pairs_low", "pairs_high"]].tolist() == [max(low, 0.0), min(high, 1.0)]


def test_one_draw_says_nothing_about_others():
    row = handmade({"a": {"w": [1]}}).table().iloc[0]
    assert (row["pairs_low"], row["pairs_high"], row["spearman_low"], row["spearman_high"]) == (0, 1, -1, 1)


def test_differences_are_paired_by_draw_and_hold_together():
    right = [1, 0] * 10
    found = handmade({"ROAD": {"w": right}, "same": {"w": right}, "better": {"w": [1] * 20}, "worse": {"w": [0] * 20}})
    table = found.differences().set_index("benchmark")
    # The same in every draw, although both vary.
    assert table.loc["same", "difference"] == 0
    assert table.loc["same", "low"] < 0 < table.loc["same", "high"]
    # Half of the draws differ by 1: Student's interval at a third of the error, as there are three differences.
    low, high = mean_interval(np.array([0.0, 1.0] * 10), 1 - 0.05 / 3)
    assert table.loc["better", ["low", "high"]].tolist() == pytest.approx([low, high])
    assert found.conclusions() == ["w: clearly better than ROAD: better; clearly worse: worse."]


def test_a_benchmark_of_patches_is_compared_with_the_order_of_pooled_maps():
    found = rw.truth_test(["gate"], ["fixed", "ideal, patches"], draws=2, images=60, progress=False)
    world = rw.truth.gate()
    assert found.own_orders == {("ideal, patches", "gate"): world.patch_order}
    assert world.patch_order.index(("very noisy",)) < world.patch_order.index(("ungated",))
    assert world.order.index(("very noisy",)) > world.order.index(("ungated",))
    # a score per map as if it were ranked like pooled maps: all right for patches, one pair wrong for pixels
    merit = {name: -float(place) for place, group in enumerate(world.patch_order) for name in group}
    merit["blurred"] += 0.5
    scores = found.scores.assign(score=found.scores["map"].map(merit))
    pairs = rw.TruthTest(scores, found.orders, own_orders=found.own_orders).recoveries().groupby("benchmark")["pairs"]
    assert pairs.first().to_dict() == {"fixed": pytest.approx(20 / 21), "ideal, patches": 1.0}


def test_an_unknown_reference_is_named():
    with pytest.raises(rw.errors.InputError, match="choose one of a"):
        handmade({"a": {"w": [1]}}).differences("ROAD")
