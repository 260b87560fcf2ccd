"""Incomplete curves and losses per class, on studies written by hand."""

import numpy as np

from predictions import BAD, GOOD, study
from roadworthy import statistics
from roadworthy.core.results import Point, Predictions


def test_the_loss_of_a_class_is_the_mean_loss_of_its_images():
    # Labels 0, 0, 1, 1. GOOD in MoRF: image 0 is right at 0 and 0.2, so it loses (0 + 1)/2; the others lose (1 + 1)/2.
    labels = np.array([0, 0, 1, 1])
    predictions = {
        Point("good", "morf", "linear", "no-retrain", share, 0): Predictions(
            np.arange(4), labels, np.where(np.array(row) == 1, labels, 9), np.ones(4, dtype=np.float32)
        )
        for share, row in zip((0.0, 0.2, 0.4), GOOD["morf"], strict=True)
    }
    table = statistics.per_class(predictions)
    assert table[["label", "images", "plain", "drop"]].to_numpy().tolist() == [[0, 2, 1, 0.75], [1, 2, 1, 1]]
    # Class 0 loses 0.5 and 1: mean 0.75, Student's half-width 12.7 · 0.25 is clipped to [−1, 1]. In class 1 both
    # images agree: up to 1 − 0.025^(1/2) = 0.842 of all images might differ, down to −1.
    assert table[["low", "high"]].round(3).to_numpy().tolist() == [[-1, 1], [round(1 - 2 * (1 - 0.025**0.5), 3), 1]]


def test_an_incomplete_curve_is_left_out_and_listed():
    predictions = study(good=GOOD, bad=BAD)
    expected = list(predictions)
    missing = Point("bad", "lerf", "linear", "no-retrain", 0.2, 0)
    whole, gaps = statistics.complete_curves(
        {point: values for point, values in predictions.items() if point != missing}, expected
    )
    assert len(whole) == 9  # 3 of the 4 curves, 3 points each
    assert gaps.to_numpy().tolist() == [["bad", "lerf", "linear", "no-retrain", "model", "pixels", 2, 3]]
    whole, gaps = statistics.complete_curves(predictions, expected)
    assert whole == predictions
    assert gaps.empty
