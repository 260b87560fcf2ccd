"""The audit's tables and conclusions against numbers derived by hand."""

import numpy as np
import pytest

from roadworthy.audit.information import bits_at_least
from roadworthy.audit.tables import (
    LITTLE,
    MUCH,
    DetectionSetting,
    conclusion_table,
    detection_table,
    mask_table,
)
from roadworthy.core.results import MaskDetection, Predictions

# Tables


def classified(correct, images=1000, classes=2):
    """Predictions of a mask classifier that is right on the first `correct` of balanced images."""
    labels = np.arange(images) % classes
    predicted = np.where(np.arange(images) < correct, labels, (labels + 1) % classes)
    return Predictions(np.arange(images), labels, predicted, np.full(images, 0.5, np.float32))


def detected(error, trivial_error=np.nan, images=100):
    return MaskDetection(np.full(images, error), np.full(images, 0.9), np.full(images, trivial_error))


def concluded(correct, error, trivial_error=np.nan, classes=2, fraction=0.5):
    masks = mask_table({("m", fraction): classified(correct, classes=classes)}, ("morf",), (fraction,))
    detections = {DetectionSetting("i", "m", "morf", fraction): detected(error, trivial_error)}
    return conclusion_table(masks, detection_table(detections)).iloc[0]


def test_lerf_has_the_mask_accuracy_of_morf_at_the_complementary_fraction():
    predictions = {("m", 0.1): classified(600), ("m", 0.5): classified(700), ("m", 0.9): classified(800)}
    table = mask_table(predictions, ("morf", "lerf"), (0.1, 0.5, 0.9)).set_index(["order", "fraction"])
    assert list(table.loc["morf", "accuracy"]) == [0.6, 0.7, 0.8]
    assert list(table.loc["lerf", "accuracy"]) == [0.8, 0.7, 0.6]


def test_bits_and_their_interval_follow_from_the_accuracy_and_its_interval():
    row = mask_table({("m", 0.5): classified(890)}, ("morf",), (0.5,)).iloc[0]
    # Wilson for 890 of 1000: .869 to .908; 1 − H₂ of .869, .89, .908 = .440, .500, .557
    assert (row["low"], row["high"]) == (pytest.approx(0.869, abs=1e-3), pytest.approx(0.908, abs=1e-3))
    bits = [row["bits_low"], row["bits"], row["bits_high"]]
    assert bits == [pytest.approx(0.440, abs=2e-3), pytest.approx(0.500, abs=2e-3), pytest.approx(0.557, abs=2e-3)]
    assert row["bits_if_optimal"] == pytest.approx(2 * 0.89 - 1)
    assert row["images"] == 1000
    assert row["note"] == ""  # both classes are predicted


def test_the_detection_error_comes_with_those_of_guessing_and_of_the_trivial_inverse():
    setting = DetectionSetting("fixed", "blobs", "", 0.9)
    detection = MaskDetection(np.array([0.0, 0.1]), np.array([1.0, 0.8]), np.array([0, 0.02]))
    row = detection_table({setting: detection}).iloc[0]
    assert (row["error"], row["auc"], row["inverse"]) == (0.05, 0.9, 0.01)
    assert row["guess"] == pytest.approx(0.1)  # at 90 % removed, "imputed everywhere" is wrong in 10 %
    assert row["low"] == 0.0 < row["error"] < row["high"]


def test_a_detector_that_is_worse_than_guessing_counts_as_no_detection():
    detections = {
        DetectionSetting("linear", "blobs", "", 0.9): detected(0.2),
        DetectionSetting("fixed", "blobs", "", 0.9): detected(0.2, trivial_error=0.0),
    }
    linear, fixed = detection_table(detections).to_dict("records")
    # At 90 % removed a constant prediction is wrong in 10 %. The trivial inverse of the other imputer is never wrong.
    assert linear["error"] > linear["guess"]
    assert "not detected" in linear["note"]
    assert fixed["note"] == ""


# Conclusions


def test_masks_with_class_information_leak_through_imputation_that_reveals_them():
    row = concluded(correct=900, error=0.05)
    # 1 − H₂(.9) = .531 of 1 bit, and 1 − .05/.5 = 90 % of the mask is detectable: 48 % leaks.
    assert row["conclusion"] == "leaks"
    assert row["leak"] == pytest.approx(0.531 * 0.9, abs=1e-3)
    assert "90%" in row["why"]
    assert "0.53 of 1.00 bits" in row["why"]
    assert "not excluded" not in row["why"]  # a proven leak needs no such note


def test_a_leak_is_a_share_of_the_class_entropy():
    row = concluded(correct=500, error=0.0, classes=10)
    # Ten classes have log₂10 = 3.32 bits; an accuracy of ½ proves 3.32 − H₂(.5) − .5·log₂9 = .737, 22 % of them.
    assert row["leak"] == pytest.approx(0.737 / 3.322, abs=1e-3)
    assert "0.74 of 3.32 bits" in row["why"]


@pytest.mark.parametrize(
    ("detectable", "conclusion"),
    [(0.018, "leak-free"), (0.020, "leaks a little"), (0.093, "leaks a little"), (0.096, "leaks")],
)
def test_the_conclusion_changes_at_one_and_at_five_percent(detectable, conclusion):
    # The masks carry 53.1 % of the class entropy: 0.956, 1.06, 4.94 and 5.10 % leak.
    assert concluded(correct=900, error=0.5 * (1 - detectable))["conclusion"] == conclusion


def test_the_same_masks_do_not_leak_where_imputation_hides_them():
    assert concluded(correct=900, error=0.5)["conclusion"] == "leak-free"
    # 4 % of the mask is detectable: .531 · .04 = 2 %
    assert concluded(correct=900, error=0.48)["conclusion"] == "leaks a little"


def test_masks_not_clearly_above_chance_do_not_leak_however_detectable():
    row = concluded(correct=520, error=0.0)  # Wilson: .489 to .551 contains chance
    assert (row["conclusion"], row["leak"]) == ("leak-free", 0)
    assert "not clearly more" in row["why"]


def test_the_reason_says_when_there_are_too_few_images_to_exclude_a_leak():
    def why(correct, images):
        masks = mask_table({("m", 0.5): classified(correct, images)}, ("morf",), (0.5,))
        detection = detection_table({DetectionSetting("i", "m", "morf", 0.5): detected(0.0)})
        row = conclusion_table(masks, detection).iloc[0]
        return row["conclusion"], row["why"]

    # 11 of 20: Wilson reaches to 74 %, and 1 − H₂(.74) = .18. 5,050 of 10,000: to 51.5 %, .0006 of a bit.
    conclusion, text = why(11, 20)
    assert conclusion == "leak-free"
    assert "up to 18% is not excluded: use more images" in text
    assert "excluded" not in why(5050, 10_000)[1]


def test_the_better_of_detector_and_trivial_inverse_counts():
    assert concluded(correct=900, error=0.5, trivial_error=0.0)["conclusion"] == "leaks"


def test_the_worst_fraction_decides():
    masks = mask_table({("m", 0.1): classified(900), ("m", 0.5): classified(500)}, ("morf",), (0.1, 0.5))
    detections = {DetectionSetting("i", "m", "morf", fraction): detected(0.0) for fraction in (0.1, 0.5)}
    row = conclusion_table(masks, detection_table(detections)).iloc[0]
    assert row["conclusion"] == "leaks"
    assert "at 10% removed" in row["why"]


@pytest.mark.parametrize(
    ("classes", "share", "accuracy"), [(10, LITTLE, 0.17), (10, MUCH, 0.27), (2, LITTLE, 0.56), (2, MUCH, 0.63)]
)
def test_the_thresholds_correspond_to_the_documented_accuracies(classes, share, accuracy):
    equal = [1 / classes] * classes
    proven = bits_at_least(accuracy, equal) / np.log2(classes)
    assert proven == pytest.approx(share, rel=0.2)
