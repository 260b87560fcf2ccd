"""Results can be read where torch is not installed."""

import subprocess
import sys

import numpy as np
import pytest

from roadworthy.core.results import Point, Predictions


@pytest.mark.parametrize("module", ["results", "errors", "files"])
def test_results_errors_and_files_import_without_torch(module):
    code = f"import sys; sys.modules['torch'] = None; import roadworthy.core.{module}"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_point_is_about_one_model_and_single_pixels_by_default():
    point = Point("ig", "morf", "linear", "no-retrain", 0.1, 0)
    assert (point.model, point.units) == ("model", "pixels")
    assert point[:6] == ("ig", "morf", "linear", "no-retrain", 0.1, 0)


def test_blocks_of_predictions_are_joined_in_order():
    blocks = [
        Predictions(np.array([7]), np.array([1]), np.array([1]), np.array([0.9], np.float32)),
        Predictions(np.array([3, 5]), np.array([0, 2]), np.array([1, 2]), np.array([0.2, 0.6], np.float32)),
    ]
    joined = Predictions.join(blocks)
    assert joined.ids.tolist() == [7, 3, 5]
    assert joined.correct.tolist() == [True, False, True]
    assert joined.probability.dtype == np.float32
