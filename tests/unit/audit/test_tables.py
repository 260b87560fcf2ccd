"""The audit's tables and conclusions against numbers worked out by hand, and on worlds whose answer is known."""

import numpy as np
import pytest

from roadworthy.audit.information import bits_at_least
from roadworthy.audit.tables import LITTLE, MUCH, Hole, conclusion_table, mask_table, recovery_table
from roadworthy.core.results import Predictions, Recovered

# Tables


def reading(right, images=1000, classes=2):
    """A reader of masks that is right on the first so many of balanced images."""
    labels = np.arange(images) % classes
    predicted = np.where(np.arange(images) < right, labels, (labels + 1) % classes)
    return Predictions(np.arange(images), labels, predicted, np.full(images, 0.5, np.float32))


def filled(error, inverse=np.nan, images=100):
    return Recovered(np.full(images, error), np.full(images, 0.9), np.full(images, inverse))


def conclusions(right, error, inverse=np.nan, classes=2, fraction=0.5):
    masks = mask_table({("m", fraction): reading(right, classes=classes)}, ("morf",), (fraction,))
    holes = {Hole("fill", "m", "morf", fraction): filled(error, inverse)}
    return conclusion_table(masks, recovery_table(holes)).iloc[0]


def test_lerf_reads_what_morf_reads_at_the_complement():
    read = {("m", 0.1): reading(600), ("m", 0.5): reading(700), ("m", 0.9): reading(800)}
    table = mask_table(read, ("morf", "lerf"), (0.1, 0.5, 0.9)).set_index(["order", "fraction"])
    assert list(table.loc["morf", "accuracy"]) == [0.6, 0.7, 0.8]
    assert list(table.loc["lerf", "accuracy"]) == [0.8, 0.7, 0.6]


def test_bits_and_their_interval_follow_from_the_accuracy_and_its():
    row = mask_table({("m", 0.5): reading(890)}, ("morf",), (0.5,)).iloc[0]
    # Wilson for 890 of 1000: .869 to .908; 1 − H₂ of .869, .89, .908 = .440, .500, .557
    assert (row["low"], row["high"]) == (pytest.approx(0.869, abs=1e-3), pytest.approx(0.908, abs=1e-3))
    found = [row["bits_low"], row["bits"], row["bits_high"]]
    assert found == [pytest.approx(0.440, abs=2e-3), pytest.approx(0.500, abs=2e-3), pytest.approx(0.557, abs=2e-3)]
    assert row["bits_if_optimal"] == pytest.approx(2 * 0.89 - 1)
    assert row["images"] == 1000
    assert row["note"] == ""  # the masks got both answers


def test_the_error_stands_beside_the_guess_and_the_trivial_inverse():
    holes = {
        Hole("fixed", "blobs", "", 0.9): Recovered(np.array([0.0, 0.1]), np.array([1.0, 0.8]), np.array([0, 0.02]))
    }
    row = recovery_table(holes).iloc[0]
    assert (row["error"], row["auc"], row["inverse"]) == (0.05, 0.9, 0.01)
    assert row["guess"] == pytest.approx(0.1)  # at 90 % removed, who says "filled" everywhere is wrong in 10 %
    assert row["low"] == 0.0 < row["error"] < row["high"]


def test_a_predictor_that_is_worse_than_guessing_is_said_to_tell_nothing():
    holes = {Hole("linear", "blobs", "", 0.9): filled(0.2), Hole("fixed", "blobs", "", 0.9): filled(0.2, inverse=0.0)}
    linear, fixed = recovery_table(holes).to_dict("records")
    # At 90 % removed a constant answer is wrong in 10 %. The trivial inverse of the other fill tells every pixel.
    assert linear["error"] > linear["guess"]
    assert "not told" in linear["note"]
    assert fixed["note"] == ""


# PointPredictions


def test_masks_that_tell_the_class_leak_through_a_fill_that_shows_them():
    row = conclusions(right=900, error=0.05)
    # 1 − H₂(.9) = .531 of 1 bit, and 1 − .05/.5 = 90 % of the mask shows: 48 % comes through.
    assert row["conclusion"] == "leaks"
    assert row["leak"] == pytest.approx(0.531 * 0.9, abs=1e-3)
    assert "90%" in row["why"]
    assert "0.53 of 1.00 bits" in row["why"]
    assert "not excluded" not in row["why"]  # what is seen needs no doubt


def test_a_leak_is_a_share_of_what_there_is_to_know():
    row = conclusions(right=500, error=0.0, classes=10)
    # Ten classes have log₂10 = 3.32 bits; half of them right prove 3.32 − H₂(.5) − .5·log₂9 = .737, 22 % of them.
    assert row["leak"] == pytest.approx(0.737 / 3.322, abs=1e-3)
    assert "0.74 of 3.32 bits" in row["why"]


@pytest.mark.parametrize(
    ("shown", "conclusion"),
    [(0.018, "leak-free"), (0.020, "leaks a little"), (0.093, "leaks a little"), (0.096, "leaks")],
)
def test_a_verdict_changes_at_one_and_at_five_percent(shown, conclusion):
    # The masks tell 53.1 % of the class: 0.956, 1.06, 4.94 and 5.10 % of it come through.
    assert conclusions(right=900, error=0.5 * (1 - shown))["conclusion"] == conclusion


def test_the_same_masks_are_harmless_where_the_fill_hides_them():
    assert conclusions(right=900, error=0.5)["conclusion"] == "leak-free"
    # 4 % of the mask shows: .531 · .04 = 2 %
    assert conclusions(right=900, error=0.48)["conclusion"] == "leaks a little"


def test_masks_that_are_not_clearly_above_chance_leak_nothing_however_well_they_show():
    row = conclusions(right=520, error=0.0)  # Wilson: .489 to .551 holds chance
    assert (row["conclusion"], row["leak"]) == ("leak-free", 0)
    assert "not clearly more" in row["why"]


def test_too_few_images_to_exclude_a_leak_are_said():
    def why(right, images):
        masks = mask_table({("m", 0.5): reading(right, images)}, ("morf",), (0.5,))
        holes = {Hole("fill", "m", "morf", 0.5): filled(0.0)}
        row = conclusion_table(masks, recovery_table(holes)).iloc[0]
        return row["conclusion"], row["why"]

    # 11 of 20: Wilson reaches to 74 %, and 1 − H₂(.74) = .18. 5,050 of 10,000: to 51.5 %, .0006 of a bit.
    conclusion, text = why(11, 20)
    assert conclusion == "leak-free"
    assert text.endswith("not clearly more; up to 18% of the class is not excluded: take more images")
    assert "excluded" not in why(5050, 10_000)[1]


def test_the_better_of_predictor_and_trivial_inverse_counts():
    assert conclusions(right=900, error=0.5, inverse=0.0)["conclusion"] == "leaks"


def test_the_worst_fraction_decides():
    masks = mask_table({("m", 0.1): reading(900), ("m", 0.5): reading(500)}, ("morf",), (0.1, 0.5))
    holes = {Hole("fill", "m", "morf", fraction): filled(0.0) for fraction in (0.1, 0.5)}
    row = conclusion_table(masks, recovery_table(holes)).iloc[0]
    assert row["conclusion"] == "leaks"
    assert "at 10% removed" in row["why"]


@pytest.mark.parametrize(
    ("classes", "share", "accuracy"), [(10, LITTLE, 0.17), (10, MUCH, 0.27), (2, LITTLE, 0.56), (2, MUCH, 0.63)]
)
def test_the_thresholds_are_the_accuracies_that_the_docs_name(classes, share, accuracy):
    equal = [1 / classes] * classes
    proven = bits_at_least(accuracy, equal) / np.log2(classes)
    assert proven == pytest.approx(share, rel=0.2)
