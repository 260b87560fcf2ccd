"""The audit's tables of masks and detection against numbers derived by hand; conclusions are in test_leakage.py."""

import numpy as np
import pytest

from roadworthy.audit.tables import DetectionSetting, detection_table, mask_table
from roadworthy.core.results import MaskDetection, Predictions


def classified(correct, images=1000, classes=2):
    """Predictions of a mask classifier that is right on the first `correct` of balanced images."""
    labels = np.arange(images) % classes
    predicted = np.where(np.arange(images) < correct, labels, (labels + 1) % classes)
    return Predictions(np.arange(images), labels, predicted, np.full(images, 0.5, np.float32))


def test_lerf_has_the_mask_accuracy_of_morf_at_the_complementary_fraction():
    predictions = {("m", 0.1): [classified(600)], ("m", 0.5): [classified(700)], ("m", 0.9): [classified(800)]}
    table = mask_table(predictions, ("morf", "lerf"), (0.1, 0.5, 0.9)).set_index(["order", "fraction"])
    assert list(table.loc["morf", "accuracy"]) == [0.6, 0.7, 0.8]
    assert list(table.loc["lerf", "accuracy"]) == [0.8, 0.7, 0.6]


def test_bits_and_their_interval_follow_from_the_accuracy_and_its_interval():
    row = mask_table({("m", 0.5): [classified(890)]}, ("morf",), (0.5,)).iloc[0]
    # Wilson for 890 of 1000: .869 to .908; 1 − H₂ of .869, .89, .908 = .440, .500, .557
    assert (row["low"], row["high"]) == (pytest.approx(0.869, abs=1e-3), pytest.approx(0.908, abs=1e-3))
    bits = [row["bits_low"], row["bits"], row["bits_high"]]
    assert bits == [pytest.approx(0.440, abs=2e-3), pytest.approx(0.500, abs=2e-3), pytest.approx(0.557, abs=2e-3)]
    assert row["bits_if_optimal"] == pytest.approx(2 * 0.89 - 1)
    assert row["images"] == 1000
    assert row["note"] == ""  # both classes are predicted
    assert row["conclusion"] == "at least 0.50 bits [0.44, 0.56]"
    assert np.isnan(row["half"])  # without a learning curve
    assert not row["rising"]


def test_the_masks_are_concluded_on_with_their_learning_curve_and_never_cleared():
    def row(*correct):
        return mask_table({("m", 0.5): [classified(one) for one in correct]}, ("morf",), (0.5,)).iloc[0]

    rising, flat, nothing = row(700, 800, 890), row(880, 889, 890), row(500, 505, 510)
    assert rising["conclusion"] == "at least 0.50 bits [0.44, 0.56]; still rising"
    assert (rising["quarter"], rising["half"]) == (0.7, 0.8)
    assert "rising" not in flat["conclusion"]
    assert nothing["conclusion"] == "none found with 1,000 masks"  # Wilson for 510: .479 to .541


def test_the_detection_error_comes_with_those_of_guessing_and_of_the_trivial_inverse():
    setting = DetectionSetting("fixed", "blobs", "", 0.9)
    detection = MaskDetection(np.array([0.0, 0.1]), np.array([1.0, 0.8]), np.array([0, 0.02]))
    row = detection_table({setting: detection}).iloc[0]
    assert (row["error"], row["auc"], row["inverse"]) == (0.05, 0.9, 0.01)
    assert row["guess"] == pytest.approx(0.1)  # at 90 % removed, "imputed everywhere" is wrong in 10 %
    assert row["low"] == 0.0 < row["error"] < row["high"]


def test_a_detector_with_a_clear_auc_detects_whatever_its_error():
    # At 90 % removed a constant prediction is wrong in 10 % and knows the fraction; the detector does not.
    settings = [DetectionSetting(name, "blobs", "", 0.9) for name in ("clear", "none", "inverse")]
    images = np.linspace(-0.05, 0.05, 100)
    aucs, inverse = (0.9, 0.5, 0.5), (np.nan, np.nan, 0.0)
    found = {
        setting: MaskDetection(np.full(100, 0.2), auc + images, np.full(100, trivial))
        for setting, auc, trivial in zip(settings, aucs, inverse, strict=True)
    }
    table = detection_table(found).set_index("imputer")
    assert (table["error"] > table["guess"]).all()
    assert table.loc["clear", "note"] == ""
    assert table.loc["clear", "auc_low"] > 0.5
    assert "not detected in 100 images" in table.loc["none", "note"]
    assert table.loc["inverse", "note"] == ""
