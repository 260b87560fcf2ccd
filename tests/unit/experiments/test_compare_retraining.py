"""Evaluators that train, through `compare`."""

import pytest
import torch

import roadworthy as rw
import worlds

WORLD = worlds.quadrants(n=40)
DATA, TRAIN = (WORLD.images[:12], WORLD.labels[:12]), (WORLD.images[12:], WORLD.labels[12:])


def compared(methods):
    torch.manual_seed(0)
    network = rw.models.small_cnn(4, channels=3)
    return rw.compare(
        network, DATA, methods, fractions=(0.5,), evaluators=("no-retrain", "retrain"), train=TRAIN, recipe="tiny",
        controls=("random",), progress=False,
    )  # fmt: skip


def test_precomputed_maps_are_refused_before_any_training_because_train_images_have_no_maps():
    with pytest.raises(rw.errors.InputError, match=r"mine: precomputed maps .* 'retrain' needs maps of the train"):
        compared({"mine": WORLD.truth[:12]})


@pytest.mark.filterwarnings("ignore::roadworthy.core.errors.LowAccuracyWarning")  # the model is untrained
def test_the_printed_ranking_and_the_warnings_name_the_evaluators():
    comparison = compared({"gradient": "gradient"})
    assert {"no-retrain", "retrain"} <= set(str(comparison).partition("\n\n")[0].split())
    # An untrained network predicts 3 of the 12 images correctly, as guessing among 4 classes does.
    warnings = comparison.warnings().query("kind == 'near chance'")
    assert "no-retrain" in warnings.set_index("evaluator").loc["no-retrain", "text"]
