"""The rehearsal: what cannot work fails on two images, before long work starts."""

import numpy as np
import pytest
import torch

import gains
import roadworthy as rw
import worlds

WORLD = worlds.quadrants(n=16)


def compare(methods, data=None, **options):
    data = data if data is not None else (WORLD.images, WORLD.labels)
    return rw.compare(
        WORLD.model, data, methods, **{"fractions": (0.3, 0.6), "controls": (), "progress": False, **options}
    )


class Counting:
    """A method that counts the images it explains."""

    def __init__(self):
        self.images = 0

    def __call__(self, model, batch, key):
        self.images += len(batch)
        return batch.images


def test_a_bad_method_is_found_before_a_good_ones_long_work():
    good = Counting()
    with pytest.raises(rw.errors.ShapeError, match="bad"):
        compare({"good": good, "bad": lambda model, batch, key: torch.zeros(3)})
    assert good.images == 2


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"imputers": {"ok": "linear", "bad": lambda batch, removed, key: batch.images[:1]}}, rw.errors.ShapeError,
         r"returned \(1, 3, 12, 12\) for images \(2, 3, 12, 12\)"),
        ({"imputers": {"bad": lambda batch, removed, key: None}}, rw.errors.ShapeError, "returned a NoneType"),
        ({"orders": {"morf": lambda maps, ids, key: 1 / 0}}, ZeroDivisionError, "division"),
    ],
)  # fmt: skip
def test_a_bad_imputer_or_order_is_found_before_long_work(options, error, message):
    good = Counting()
    with pytest.raises(error, match=message):
        compare({"good": good}, **options)
    assert good.images == 2


def test_the_largest_fraction_is_tried_first():
    good = Counting()
    with pytest.raises(rw.errors.EverythingRemovedError):
        compare({"good": good}, fractions=(0.5, 1))
    assert good.images == 2


def test_all_precomputed_maps_are_checked_first():
    good, maps = Counting(), WORLD.truth.clone()
    maps[15, 0, 0] = float("nan")
    with pytest.raises(rw.errors.InputError, match="mine: NaN in the maps of images 15"):
        compare({"good": good, "mine": maps})
    assert good.images == 0


def test_the_target_of_the_rehearsal_is_that_of_the_run():
    seen = []

    def method(model, batch, key):
        seen.append(batch.labels.tolist())
        return batch.images

    wrong = (WORLD.labels + 1) % 4
    compare({"m": method}, (WORLD.images, wrong), target="prediction")
    assert seen[0] == WORLD.labels[:2].tolist()
    seen.clear()
    compare({"m": method}, WORLD.images)  # no labels: the prediction stands in
    assert seen[0] == WORLD.labels[:2].tolist()


def test_one_image_is_enough():
    comparison = compare({"m": Counting()}, (WORLD.images[:1], WORLD.labels[:1]))
    assert np.array_equal(next(iter(comparison.predictions.values())).ids, [0])


def test_an_imputer_that_is_trained_first_is_not_rehearsed(monkeypatch):
    trained = []
    monkeypatch.setattr("roadworthy.experiments.compute.train_gain", lambda *a, **o: trained.append(1) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        compare({"m": Counting()}, (WORLD.images[:8], WORLD.labels[:8]), imputers=gains.TINY,
                train=(WORLD.images[8:], WORLD.labels[8:]))  # fmt: skip
    assert trained == [1]
