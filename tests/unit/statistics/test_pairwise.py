"""Ranks, pairwise comparisons and groups, against numbers derived by hand."""

import json
from types import ModuleType

import numpy as np
import pytest

from predictions import BAD, GOOD, endurance_study, study
from roadworthy import statistics
from roadworthy.statistics.intervals import Variance
from roadworthy.statistics.paired_differences import PairedComparisons, PairedDifferences
from roadworthy.statistics.pairwise import images_needed


def test_equal_methods_share_a_rank_and_are_not_separated():
    table = statistics.ranking(study(one=GOOD, two=GOOD)).set_index("method")
    assert table["srg_rank"].tolist() == [1, 1]
    assert table["srg_rank_low"].tolist() == [1, 1]
    assert table["srg_rank_high"].tolist() == [2, 2]
    assert table["groups"].tolist() == ["a", "a"]
    pair = statistics.pairwise(study(one=GOOD, two=GOOD)).iloc[0]
    assert (pair["difference"], pair["p"], pair["probability"], pair["wins"]) == (0, 1, 0.5, 0.5)
    assert np.isinf(pair["images_needed"])


def test_pairs_are_tested_on_the_same_images():
    pair = statistics.pairwise(study(bad=BAD, good=GOOD)).iloc[0]
    # Per image srg of good: .25, .75, .75, .5, of bad the negatives: differences .5, 1.5, 1.5, 1: mean 1.125, standard
    # deviation sqrt(.6875/3) = .47871, standard error .23936, t = 4.7001 with 3 degrees of freedom: p = .0182.
    assert (pair["method_a"], pair["method_b"]) == ("good", "bad")
    assert pair["difference"] == pytest.approx(1.125)
    assert pair["p"] == pair["p_holm"] == pytest.approx(0.0182, abs=1e-4)
    # With a single pair: Student's interval, 1.125 ∓ 3.1824 · .23936.
    assert (pair["low"], pair["high"]) == pytest.approx((0.3632, 1.8868), abs=2e-3)
    assert pair["separated"]
    assert pair["wins"] == 1
    assert pair["probability"] > 0.99
    assert list(statistics.pairwise(study(bad=BAD, good=GOOD)).columns) == statistics.PAIRWISE_COLUMNS


def test_the_lower_morf_area_is_better():
    points = {
        point: each for point, each in endurance_study(low=(0.2, 0.5), high=(0.6, 0.5)).items() if point.order == "morf"
    }
    pair = statistics.pairwise(points).iloc[0]
    assert (pair["score"], pair["method_a"], pair["method_b"]) == ("morf", "low", "high")
    assert pair["low"] > 0
    table = statistics.ranking(points).set_index("method")
    assert table[["morf_rank", "morf_rank_low", "morf_rank_high"]].to_numpy().tolist() == [[1, 1, 1], [2, 2, 2]]


def test_a_tie_is_an_interval_within_the_margin():
    points = endurance_study(images=100, one=(0.3, 0.7), two=(0.3, 0.7))
    rule = statistics.StoppingRule(confidence=0.95, margin=2.0, comparisons=1)
    pair = statistics.pairwise(points, stopping=rule).iloc[0]
    widest = max(-pair["low"], pair["high"])
    assert pair["tie"]
    for margin, tie in ((1.01 * widest, True), (0.99 * widest, False)):
        assert statistics.pairwise(points, stopping=rule._replace(margin=margin))["tie"].item() == tie
    # More comparisons share the same error, so the interval is wider.
    assert statistics.pairwise(points, stopping=rule._replace(comparisons=50))["high"].item() > pair["high"]


def differences(p, mean=0.1, seeds=0.0):
    first, second = np.triu_indices(3, k=1)
    ones = np.ones(3)
    variance = Variance(0.0004 * ones, seeds * ones, (99, 1))
    return PairedDifferences(first, second, mean * ones, -ones, ones, np.asarray(p), ones, ones, variance, tests=1)


def test_groups_are_the_largest_sets_that_no_test_separates():
    # Holm at 5 %: 3 · .001 separates x and z; 2 · .2 separates no more pairs. y is in both groups.
    pairs = differences([0.5, 0.001, 0.2])
    comparisons = PairedComparisons(("x", "y", "z"), np.array([3.0, 2, 1]), *np.zeros((2, 3)), True, pairs, 100)
    assert statistics.groups(comparisons) == [["x", "y"], ["y", "z"]]


def test_images_needed_follow_from_difference_and_variance():
    # Standard error .02 on 100 images: standard deviation .2 per image. To detect .1 at 5 % with 80 % power the
    # standard error must be .1/(1.95996 + .84162): ((2.80158 · .2)/.1)² = 31.4 images.
    assert images_needed(differences([0.5] * 3), 100, 0.95).tolist() == [32] * 3
    # .05²/2.80158² = .000318 is less than the variance between seeds: more images cannot help.
    assert np.isinf(images_needed(differences([0.5] * 3, mean=0.05, seeds=0.0004), 100, 0.95)).all()


def test_ranks_and_groups_of_a_clear_winner_and_two_equal_methods():
    table = statistics.ranking(endurance_study(best=(0.2, 0.8), one=(0.45, 0.55), two=(0.45, 0.55))).set_index("method")
    assert table.loc["best", ["srg_rank", "srg_rank_low", "srg_rank_high"]].tolist() == [1, 1, 1]
    assert table.loc[["one", "two"], "srg_rank_low"].tolist() == [2, 2]
    assert table.loc[["one", "two"], "srg_rank_high"].tolist() == [3, 3]
    assert table["groups"].to_dict() == {"best": "a", "one": "b", "two": "b"}


def test_a_stopping_rule_survives_json():
    for named in ({}, {"methods": ("a", "b"), "controls": ("random",), "seed": 3, "images": 100, "finite": True}):
        rule = statistics.StoppingRule(confidence=0.95, margin=0.02, comparisons=15, **named)
        assert statistics.StoppingRule.read(json.loads(json.dumps(rule._asdict()))) == rule


def test_methods_by_score_are_in_the_order_of_the_ranking():
    points = endurance_study(low=(0.45, 0.55), best=(0.2, 0.8), same=(0.45, 0.55), worst=(0.8, 0.2))
    assert statistics.methods_by_score(points) == statistics.ranking(points)["method"].tolist()
    morf = {point: each for point, each in points.items() if point.order == "morf"}
    assert statistics.methods_by_score(morf) == statistics.ranking(morf)["method"].tolist()
    assert statistics.methods_by_score(morf)[0] == "best"  # the lower area


def test_all_tables_take_the_same_draws():
    values = np.random.default_rng(0).normal(size=(3, 1, 50))
    once, again = (statistics.resampled_means(values, draws=200, seed=4) for _ in range(2))
    assert (once == again).all()
    # as many images in total as there are, in every draw
    ones = statistics.resampled_means(np.ones((1, 1, 50)), draws=200, seed=4)
    assert ones == pytest.approx(1)
    assert statistics.resampled_means(values[:1], draws=200, seed=4)[:, 0] == pytest.approx(once[:, 0])
    assert not (statistics.resampled_means(values, draws=200, seed=5) == once).any()


def test_the_public_names_are_complete():
    public = {name for name, value in vars(statistics).items() if name[0] != "_" and not isinstance(value, ModuleType)}
    assert public == set(statistics.__all__)
