"""Warnings, on studies written by hand."""

import numpy as np
import pytest

from predictions import BAD, GOOD, endurance_study, study
from roadworthy import statistics
from roadworthy.core.results import Copy, Point, Predictions


def warned(points, controls=(), **facts):
    table = statistics.warnings(
        points, statistics.ranking(points, controls), statistics.pairwise(points, controls), **facts
    )
    return table.set_index("kind")


def test_a_method_beaten_by_controls_is_named_with_them():
    points = endurance_study(mine=(0.55, 0.45), random=(0.5, 0.5), edges=(0.4, 0.6), fine=(0.2, 0.8))
    rows = warned(points, controls=("random", "edges"))
    assert list(rows.index) == ["beaten by a control"]
    assert rows["method"].item() == "mine"
    assert "beaten by the controls edges and random: mine" in rows["text"].item()


@pytest.mark.parametrize(("ahead", "better"), [(0.012, "random"), (0.0, "mine")])
def test_a_method_that_is_not_clearly_better_than_a_control_is_named(ahead, better):
    points = endurance_study(mine=(0.5, 0.5), random=(0.5 - ahead, 0.5 + ahead), fine=(0.2, 0.8))
    pair = statistics.pairwise(points).query("method_a != 'fine'").iloc[0]
    assert pair["method_a"] == better  # by chance, not clearly
    assert pair["low"] < 0
    rows = warned(points, controls=("random",))
    assert rows.index.tolist() == ["not above a control"]
    assert "the control random: mine" in rows["text"].item()


def test_blurred_and_inverted_copies_that_beat_their_method_are_named():
    points = endurance_study(a=(0.4, 0.6), a_blurred=(0.3, 0.7), b=(0.6, 0.4), b_inverted=(0.4, 0.6))
    copies = {"a blurred": Copy("a", "blurred"), "b inverted": Copy("b", "inverted")}
    rows = warned(points, controls=tuple(copies), copies=copies)
    assert "blurred copy of a" in rows.loc["blurred copy wins", "text"]
    assert "check the sign" in rows.loc["beaten by its inverse", "text"]
    # That the blurred copy of a also beats b is not reported.
    assert len(rows) == 2


def test_constant_maps_ties_few_images_and_chance_accuracy_are_reported():
    ties = {"a": statistics.Ties(tied=0.8, constant=0.0), "b": statistics.Ties(tied=1.0, constant=1.0)}
    points = endurance_study(images=40, a=(0.2, 0.8), b=(0.5, 0.5))
    rows = warned(points, ties=ties)
    assert rows.loc["ties", "method"] == "a"
    assert "80 %" in rows.loc["ties", "text"]
    assert rows.loc["constant maps", "method"] == "b"
    assert "Only 40 images" in rows.loc["few images", "text"]
    # Four classes of 10 images each, 25 % by chance; 12 of 40 right: Wilson from 18 %, so not above it.
    guessed = np.arange(40) < 12
    chance = {
        point: with_hits(guessed, points[point].labels) if point.fraction == 0 else each
        for point, each in points.items()
    }
    assert "is 30 %, not clearly above chance (25 %)" in warned(chance).loc["near chance", "text"]


def with_hits(correct, labels):
    return Predictions(
        np.arange(len(labels)), labels, np.where(correct, labels, (labels + 1) % 4), np.zeros(len(labels))
    )


def test_images_of_a_single_class_are_not_near_chance():
    assert "near chance" not in warned(study(good=GOOD, bad=BAD), classes=10).index


def test_few_seeds_are_reported_for_an_evaluator_that_trains():
    assert "few seeds" not in warned(study(good=GOOD, bad=BAD)).index
    text = warned(study("retrain", good=GOOD, bad=BAD)).loc["few seeds", "text"]
    assert text.startswith("retrain was run with 1 seed")


def test_settings_are_named_if_there_are_several():
    points = endurance_study(a=(0.2, 0.8), random=(0.5, 0.5)) | endurance_study(
        a=(0.6, 0.4), random=(0.5, 0.5), imputer="fixed"
    )
    rows = warned(points, controls=("random",))
    assert "beaten by the control random (fixed)" in rows["text"].item()


def test_the_preferred_block_is_chosen_by_the_caller_not_by_the_names_of_the_imputers():
    points = endurance_study(imputer="fixed", a=(0.2, 0.8)) | endurance_study(imputer="linear", a=(0.2, 0.8))
    ranking = statistics.ranking(points)
    assert statistics.preferred_block(ranking) == ("no-retrain", "fixed")
    assert statistics.preferred_block(ranking, ("no-retrain", "linear")) == ("no-retrain", "linear")
    assert statistics.preferred_block(ranking, ("retrain", "linear")) == ("no-retrain", "fixed")


def test_with_three_images_the_warning_is_about_their_number_not_about_the_labels():
    # 3 of 3 correct, three classes: chance is 1/3, and Wilson's interval starts at 3/(3 + 3.84) = .44; with two classes
    # chance is 2/3, which 3 images cannot exceed.
    points = endurance_study(images=3, a=(0.2, 0.8), b=(0.5, 0.5))
    two_classes = {
        point: Predictions(each.ids, labels, np.where(each.correct, labels, 2), each.probability)
        for point, each in points.items()
        for labels in [np.array([0, 1, 1])]
    }
    rows = warned(two_classes)
    assert set(rows.index) == {"few images"}
    assert "accuracy is 100 % on 3 images: too few to show that it is above chance (67 %)" in rows["text"].iloc[1]
    assert "labels" not in " ".join(rows["text"])


def test_few_images_are_not_rough_after_early_stopping():
    points = endurance_study(images=40, a=(0.1, 0.9), b=(0.9, 0.1))
    assert "few images" in warned(points).index
    rule = statistics.StoppingRule(confidence=0.95, margin=0.02, comparisons=1)
    assert "few images" not in warned(points, stopping=rule).index


def raised_study(images=400, methods=("a", "b", "c"), order="lerf"):
    """Without removal 300 of 400 images are correct; methods a and b correct 60 and 40 more at fraction 0.3."""
    labels, predictions = np.arange(images) % 4, {}
    for method in methods:
        for fraction in (0.0, 0.3, 0.9):
            gained = {"a": 60, "b": 40}.get(method, 0) * (fraction == 0.3) - 200 * (fraction == 0.9)
            hits = np.arange(images) < 300 + gained
            predicted = np.where(hits, labels, (labels + 1) % 4)
            point = Point(method, order, "linear", "no-retrain", fraction, 0)
            predictions[point] = Predictions(np.arange(images), labels, predicted, hits.astype(np.float32))
    return predictions


def test_removal_that_raises_the_accuracy_is_reported_with_numbers_and_a_way_to_check():
    rows = warned(raised_study())
    # One warning for the block, with the worst case: (300 + 60)/400 = 90 % at 30 %, 300/400 = 75 % before.
    assert rows.index.tolist() == ["removal raises accuracy"]
    assert rows["method"].item() == "a, b"
    text = rows["text"].item()
    assert "a, LeRF, 90.0 % after removing 30 %, 75.0 % before; so it is for 1 more method." in text
    assert "label information" in text
    assert 'target="prediction"' in text


def test_with_maps_of_the_predictions_the_warning_does_not_offer_them_again():
    text = warned(raised_study(), target="prediction").loc["removal raises accuracy", "text"]
    assert "target=" not in text
    assert "against the labels" in text


def test_accuracy_that_rises_in_morf_points_at_the_sign_of_the_maps():
    assert "check the sign" in warned(raised_study(order="morf")).loc["removal raises accuracy", "text"]


def test_a_gain_that_may_be_chance_and_one_of_a_control_are_not_reported():
    points = endurance_study(images=300, a=(0.2, 0.8), b=(0.5, 0.5))
    assert "removal raises accuracy" not in warned(points).index  # nothing can be above 100 %
    # 3 of 400 images are gained at one of 9 points: one-sided binomial p = 1/8.
    slight = raised_study(methods=("c",)) | raised_study(methods=("d",))
    for point, each in slight.items():
        if (point.method, point.fraction) == ("c", 0.3):
            each.predicted[300:303] = each.labels[300:303]
    assert "removal raises accuracy" not in warned(slight).index
    control = raised_study(methods=("a", "c"))
    assert "removal raises accuracy" not in warned(control, controls=("a",)).index


def test_a_raised_accuracy_is_also_seen_after_early_stopping_but_later():
    rule = statistics.StoppingRule(confidence=0.95, margin=0.02, comparisons=3)
    assert "removal raises accuracy" in warned(raised_study(), stopping=rule).index
