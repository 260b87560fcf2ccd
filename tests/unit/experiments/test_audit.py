"""The audit of a comparison, on worlds whose answer is known."""

import numpy as np
import pandas as pd
import pytest

import roadworthy as rw
import worlds
from roadworthy.core.errors import InputError, RangeError
from roadworthy.experiments.auditing import Settings, known_labels
from roadworthy.experiments.build import Context


@pytest.fixture(scope="module")
def comparison():
    world = worlds.sides(n=160)
    return rw.compare(
        world.model, (world.images, world.labels), {"truth": world.truth}, imputer=["fixed", "linear"],
        fractions=(0.2, 0.8), controls=("random", "inverted"), batch_size=160,
    )  # fmt: skip


def test_the_audit_of_a_comparison_concludes_which_scores_leak(comparison, tmp_path):
    before = str(comparison)
    table = comparison.audit(fractions=(0.2,)).set_index(["method", "order", "imputer"])["conclusion"]
    # The position of the block is the class. A fixed color reveals the mask, linear imputation hides it.
    assert table["truth", "morf", "fixed"] == "leaks"
    assert table["truth", "morf", "linear"] == "leak-free"
    assert set(table["random"]) == {"leak-free"}
    assert "leakage" not in before
    assert "leakage" in str(comparison)  # a column of the ranking once audited
    page = comparison.report(tmp_path / "page.html").read_text()
    assert "Does the evaluation leak?" in page
    assert "<td>leaks</td>" in page


def test_the_tables_behind_the_conclusions_are_available_and_computed_once(comparison):
    tables = comparison.audit_tables(fractions=(0.2,))
    assert tables is comparison.audit_tables(fractions=(0.2,))
    assert set(tables) == {"masks", "detection", "geometry", "leads", "conclusions"}
    assert set(tables["geometry"]["method"]) == {"truth", "random"}
    assert list(tables["masks"].columns[:12]) == [
        "method", "order", "fraction", "accuracy", "low", "high", "chance", "bits", "bits_low", "bits_high",
        "bits_if_optimal", "images",
    ]  # fmt: skip
    assert list(tables["detection"].columns[:8]) == [
        "imputer", "masks", "fraction", "error", "auc", "low", "high", "guess",
    ]  # fmt: skip
    assert set(tables["detection"]["masks"]) == {"scatter", "blobs", "truth", "random"}
    assert list(tables["conclusions"].columns[:5]) == ["method", "order", "imputer", "conclusion", "why"]
    with pd.option_context("display.width", 80, "display.max_columns", 0):
        first, *_ = str(comparison.audit(fractions=(0.2,))).splitlines()
    assert first.split() == ["method", "order", "...", "imputer", "conclusion"]  # what fits a narrow terminal


def test_images_drawn_in_random_order_are_audited_with_their_own_maps_and_labels():
    world = worlds.sides(n=120)
    stopped = rw.compare(
        world.model, (world.images, world.labels), {"truth": world.truth}, fractions=(0.2,), controls=("random",),
        until_ranked=0.9, batch_size=64, map_batch=32,
    )  # fmt: skip
    images = len(next(iter(stopped.predictions.values())))
    masks = stopped.audit_tables(fractions=(0.2,))["masks"].set_index(["method", "order"])
    assert (masks["images"] == images).all()
    # If maps and labels of different images were combined, the masks would carry no information.
    assert masks.loc[("truth", "morf"), "accuracy"] > 0.8


def test_without_labels_the_predictions_of_the_model_are_used():
    world = worlds.sides(n=20)
    ids, labels = known_labels(Context(rw.datasets.Arrays(world.images), rw.Normalized(world.model), {}, {}))
    assert ids.tolist() == list(range(20))
    assert labels.tolist() == world.labels.tolist()  # this model is never wrong


def test_invalid_settings_raise_errors():
    with pytest.raises(RangeError, match="0 and 1"):
        Settings((0.0, 0.5))
    with pytest.raises(InputError, match="small, resnet18"):
        Settings(reader="large")


def test_an_audit_of_one_class_is_an_error():
    world = worlds.sides(n=20)
    images = world.images[world.labels == 0]
    alone = rw.compare(world.model, (images, np.zeros(10, int)), {"t": world.truth[:10]}, fractions=(0.5,), controls=())
    with pytest.raises(InputError, match="one class only"):
        alone.audit()
