"""Damaged copies: is their true order found, what does damage cost, how far do other copies move?"""

import numpy as np
import pytest

from predictions import prediction
from roadworthy.core.results import Degraded, Point
from roadworthy.statistics import copy_changes, known_order, out_of_scope, scope
from roadworthy.statistics.self_test import SHARES, damaged_first

SWAPPED = Degraded("m", "swapped")
NAMES = {SWAPPED.name: SWAPPED}


def curves(method, morf, lerf, ids=None):
    """Fraction 0 is always right; at 1 the hits are given per image and order. The area is then (1 + hit) / 2."""
    found = {}
    for order, hits in (("morf", morf), ("lerf", lerf)):
        for fraction, row in ((0.0, np.ones(len(hits), dtype=int)), (1.0, np.asarray(hits))):
            found[Point(method, order, "linear", "no-retrain", fraction, 0)] = prediction(row, ids=ids)
    return found


def rows(count, chance, seed):
    return (np.random.default_rng(seed).random(count) < chance).astype(int)


def test_the_images_that_are_damaged_first_depend_on_their_ids_alone():
    ids = np.array([7, 3, 11, 5, 2])
    first = damaged_first(ids, seed=0)
    assert sorted(first) == [0, 1, 2, 3, 4]
    # the same images in another order, and a subset, are damaged in the same order
    assert damaged_first(ids[::-1], 0).tolist() == first[::-1].tolist()
    assert np.argsort(damaged_first(ids[:3], 0)).tolist() == [k for k in np.argsort(first).tolist() if k < 3]
    assert damaged_first(ids, seed=1).tolist() != first.tolist()


def test_a_copy_has_the_score_of_one_of_two_evaluations_on_each_image():
    n = 40
    real, other = curves("m", rows(n, 0.2, 1), rows(n, 0.9, 2)), curves(SWAPPED.name, rows(n, 0.8, 3), rows(n, 0.3, 4))
    _, damage = known_order(real, other, NAMES, seed=5)
    first = damaged_first(np.arange(n), 5)
    for row in damage.itertuples():
        # literally: evaluate image by image, damaged if it is among the first
        total = 0.0
        for image in range(n):
            source, name = (other, SWAPPED.name) if first[image] < round(row.share * n) else (real, "m")
            area = {
                order: (1 + source[Point(name, order, "linear", "no-retrain", 1.0, 0)].correct[image]) / 2
                for order in ("morf", "lerf")
            }
            total += {"srg": area["lerf"] - area["morf"], **area}[row.score]
        assert row.value == pytest.approx(total / n), row
    assert damage["share"].unique().tolist() == [0.0, *SHARES]
    # in MoRF lower is better: a copy with a higher area loses
    whole = damage[(damage["share"] == 1) & (damage["score"] == "morf")]
    start = damage[(damage["share"] == 0) & (damage["score"] == "morf")]
    assert whole["loss"].item() == pytest.approx(whole["value"].item() - start["value"].item())


def test_a_clear_order_is_found_and_a_reversed_one_is_reported():
    n = 200
    good, bad = (rows(n, 0.1, 1), rows(n, 0.95, 2)), (rows(n, 0.9, 3), rows(n, 0.2, 4))
    order, _ = known_order(curves("m", *good), curves(SWAPPED.name, *bad), NAMES)
    assert order["state"].tolist() == ["found"] * 3
    assert (order["accuracy"] == 1).all()
    assert (order["spearman"] == 1).all()
    assert (order["smallest"] == 0.25).all()
    order, _ = known_order(curves("m", *bad), curves(SWAPPED.name, *good), NAMES)
    assert order["state"].tolist() == ["reversed"] * 3
    assert (order["accuracy"] == 0).all()
    assert order["smallest"].isna().all()


def test_a_reversal_in_one_order_shows_although_the_other_hides_it():
    n = 400
    # MoRF is reversed by half of the images, LeRF falls on all of them: LeRF − MoRF looks right.
    real, other = (np.ones(n), np.ones(n)), (rows(n, 0.5, 1), np.zeros(n))
    order, _ = known_order(curves("m", *real), curves(SWAPPED.name, *other), NAMES)
    assert order.set_index("score")["state"].to_dict() == {"srg": "found", "morf": "reversed", "lerf": "found"}


def test_too_few_images_do_not_see_little_damage():
    n = 40
    order, damage = known_order(
        curves("m", rows(n, 0.3, 1), rows(n, 0.8, 2)), curves(SWAPPED.name, rows(n, 0.7, 3), rows(n, 0.4, 4)), NAMES
    )
    leading = order[order["leading"]].squeeze()
    assert leading["state"] == "found"
    assert 0.25 < leading["smallest"] <= 1
    unseen = damage[damage["leading"] & (damage["share"] == 0.25)].squeeze()
    assert unseen["low"] < 0 < unseen["high"]


def test_what_is_seen_must_be_seen_with_more_damage_too():
    n = 200
    first = damaged_first(np.arange(n), 0)
    # The first quarter of the images loses by damage, the second gains as much, the rest loses again.
    gains = (first >= 50) & (first < 100)
    order, damage = known_order(
        curves("m", gains.astype(int), ~gains), curves(SWAPPED.name, (~gains).astype(int), gains), NAMES
    )
    lost = damage[damage["leading"] & (damage["share"] > 0)]
    assert (lost["low"] > 0).tolist() == [True, False, True, True]
    assert order.loc[order["leading"], "smallest"].item() == 0.75


def test_a_negative_control_stands_still_and_has_no_order():
    n = 60
    same = rows(n, 0.5, 1), rows(n, 0.5, 2)
    order, damage = known_order(curves("m", *same), curves(SWAPPED.name, *same), NAMES, negatives=("m",))
    assert order["negative"].all()
    assert (order["state"] == "still").all()
    assert (order["accuracy"] == 0.5).all()
    assert order["spearman"].isna().all()
    assert (damage["loss"] == 0).all()
    other = np.zeros(n), np.ones(n)
    order, _ = known_order(curves("m", *same), curves(SWAPPED.name, *other), NAMES, negatives=("m",))
    assert (order["state"] == "moved").all()


def test_intervals_after_early_stopping_are_wider():
    n = 100
    real, other = (
        curves("m", rows(n, 0.3, 1), rows(n, 0.8, 2)), curves(SWAPPED.name, rows(n, 0.7, 3), rows(n, 0.4, 4))
    )  # fmt: skip
    _, fixed = known_order(real, other, NAMES)
    _, anytime = known_order(real, other, NAMES, anytime=True)
    whole = fixed["share"] == 1
    assert ((anytime["high"] - anytime["low"])[whole] > (fixed["high"] - fixed["low"])[whole]).all()


def test_a_copy_is_compared_with_its_original_on_the_images_of_the_copy():
    ids = np.arange(10)
    real = curves("m", np.arange(10) < 5, np.ones(10), ids)
    copy = Degraded("m", "blurred", 2.0)
    # images 4 to 7 only: the original is right on one of four, the copy on all: MoRF area + 3/4 / 2
    other = curves(copy.name, np.ones(4), np.ones(4), ids[4:8])
    table = copy_changes(real, other, {copy.name: copy}).set_index("score")
    assert table["images"].unique().tolist() == [4]
    assert table.loc["morf", "change"] == pytest.approx(-3 / 8)  # lower is better
    assert table.loc["srg", "change"] == pytest.approx(-3 / 8)
    assert not table["same"].any()


def test_maps_that_do_not_change_are_said_to_be_the_same():
    hits = rows(30, 0.5, 1), rows(30, 0.5, 2)
    copy = Degraded("m", "randomized", 1.0)
    assert copy_changes(curves("m", *hits), curves(copy.name, *hits), {copy.name: copy})["same"].all()
    other = {point: prediction(p.correct, 0.5 * p.probability) for point, p in curves(copy.name, *hits).items()}
    # the same answers with other probabilities come from other maps
    assert not copy_changes(curves("m", *hits), other, {copy.name: copy})["same"].any()


def test_the_scope_counts_images_beyond_the_range_of_the_real_ones():
    real = np.linspace(0.5, 1, 101)  # 95 % have a confidence of at least 0.525
    values = {
        "confidence": real,
        "confidence morf 0.5": np.r_[np.full(90, 0.4), np.full(11, 0.9)],
        "distance": np.linspace(0, 1, 101),  # 95 % are nearer than 0.95
        "distance morf 0.5": np.r_[np.full(20, 2.0), np.full(80, 0.1), np.nan],
        "reference 0.5": np.r_[np.full(50, 0.25), np.full(51, 0.75)],
    }
    table = scope({"linear": values}, "m", {"linear": ("morf",)}, (0.5,)).set_index(["measure", "fraction"])
    assert table.loc[("confidence", 0.0), "limit"] == pytest.approx(0.525)
    assert table.loc[("confidence", 0.0), "outside"] == pytest.approx(5 / 101)
    assert table.loc[("confidence", 0.5), "outside"] == pytest.approx(90 / 101)
    assert table.loc[("distance", 0.5), "outside"] == pytest.approx(0.2)  # of the 100 that have a distance
    assert table["out"].tolist() == [False, True, False, False]
    # R-OMS: of whole images the mean confidence, at 50 % the mean of what is kept; the same in all rows of a fraction
    assert table["r_oms"].tolist() == pytest.approx([0.75, (50 * 0.25 + 51 * 0.75) / 101] * 2)
    assert ((table["r_oms_low"] < table["r_oms"]) & (table["r_oms"] < table["r_oms_high"])).all()
    # where there are distances, they decide
    assert out_of_scope(table.reset_index()) == {}
    assert out_of_scope(table.loc[["confidence"]].reset_index()) == {("linear", "morf"): [0.5]}
