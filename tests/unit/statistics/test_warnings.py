"""Warnings and the sentences made from the tables."""

import numpy as np
import pytest

from predictions import BAD, GOOD, curve_study, endurance_study, study
from roadworthy import statistics
from roadworthy.core.results import Copy, Predictions


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
    assert "80%" in rows.loc["ties", "text"]
    assert rows.loc["constant maps", "method"] == "b"
    assert "Only 40 images" in rows.loc["few images", "text"]
    # Four classes of 10 images each, 25 % by chance; 12 of 40 right: Wilson from 18 %, so not above it.
    guessed = np.arange(40) < 12
    chance = {
        point: with_hits(guessed, points[point].labels) if point.fraction == 0 else each
        for point, each in points.items()
    }
    assert "is 30%, not clearly above chance (25%)" in warned(chance).loc["near chance", "text"]


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


def summary(points, controls=(), warnings=()):
    return statistics.summary(statistics.ranking(points, controls), statistics.pairwise(points, controls), warnings)


def test_the_summary_names_the_first_method_and_the_confidence():
    text = summary(study(mine=GOOD, other=BAD))
    assert text.startswith("Imputed with linear: mine ranks first on 4 images (LeRF − MoRF 0.562 [")
    assert "clearly ahead of every other method (95% confidence" in text


def test_the_summary_names_rivals_and_the_number_of_images_that_would_separate_them():
    points = endurance_study(images=100, one=(0.30, 0.70), two=(0.32, 0.69))
    text, pair = summary(points), statistics.pairwise(points).iloc[0]
    assert "not clearly ahead of two." in text
    assert f"beats two with probability {pair['probability']:.0%}; about " in text
    assert "images would separate them." in text
    assert "no number of images would separate them" in summary(study(mine=GOOD, twin=GOOD))


def test_the_summary_ends_with_warnings_and_never_ranks_a_control_first():
    text = summary(study(random=GOOD, mine=BAD), controls=("random",), warnings=["Mind the gap."])
    assert "mine is the only method on 4 images" in text
    assert text.endswith("Warning: Mind the gap.")


def test_settings_are_named_if_there_are_several():
    points = endurance_study(a=(0.2, 0.8), random=(0.5, 0.5)) | endurance_study(
        a=(0.6, 0.4), random=(0.5, 0.5), imputer="fixed"
    )
    rows = warned(points, controls=("random",))
    assert "beaten by the control random (fixed)" in rows["text"].item()
    text = summary(curve_study({("morf", "linear"): {"a": {0.5: 0.1}}, ("morf", "fixed"): {"a": {0.5: 0.1}}}) | points)
    assert text.count("Imputed with") == 2


def test_the_preferred_block_is_chosen_by_the_caller_not_by_the_names_of_the_imputers():
    points = endurance_study(imputer="fixed", a=(0.2, 0.8)) | endurance_study(imputer="linear", a=(0.2, 0.8))
    ranking = statistics.ranking(points)
    assert statistics.preferred_block(ranking) == ("no-retrain", "fixed")
    assert statistics.preferred_block(ranking, ("no-retrain", "linear")) == ("no-retrain", "linear")
    assert statistics.preferred_block(ranking, ("retrain", "linear")) == ("no-retrain", "fixed")


def test_the_conclusion_is_about_the_preferred_block():
    points = endurance_study(a=(0.2, 0.8), b=(0.5, 0.5))
    points |= endurance_study(imputer="fixed", a=(0.5, 0.5), b=(0.2, 0.8))
    tables = statistics.ranking(points), statistics.pairwise(points)
    assert statistics.conclusion(*tables).startswith("Imputed with linear: a ranks first on 400 images, clearly ahead")
    preferred = statistics.conclusion(*tables, preferred=("no-retrain", "fixed"))
    assert preferred.startswith("Imputed with fixed: b ranks first on 400 images, clearly ahead")
