"""The mask classifier: on worlds where masks determine the class or carry nothing, and on invalid inputs."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import worlds
from roadworthy.audit.mask_information import (
    FOLDS,
    MASK_CLASSIFIERS,
    _inputs,
    check_classes,
    classify_masks,
    folds,
    learning_curve,
)
from roadworthy.audit.tables import mask_table
from roadworthy.core.errors import InputError
from roadworthy.core.masks import removed_at
from roadworthy.core.random import Key
from roadworthy.evaluation.orders import most_relevant_first

SMALL = MASK_CLASSIFIERS["small"]


def classified(maps, labels, fraction, key=Key(0)):  # noqa: B008  a frozen value
    ids = torch.arange(len(labels))
    return classify_masks(removed_at(most_relevant_first(maps, ids, key), fraction), labels, ids, key, SMALL)


@pytest.fixture(scope="module")
def leaking():
    """The position of the block is the class, and the true map removes the block first: 20 % masks reveal the class."""
    world = worlds.sides(n=240)
    return classified(world.truth, world.labels, 0.2)


def test_masks_that_determine_the_class_have_nearly_all_of_its_bits(leaking):
    row = mask_table({("truth", 0.2): [leaking]}, ("morf",), (0.2,)).iloc[0]
    assert row["accuracy"] > 0.97
    # H(C) = 1 bit for two equal classes; an accuracy of .97 proves 1 − H₂(.97) = .81 of it.
    assert row["class_bits"] == 1
    assert row["bits"] > 0.8
    assert row["bits_if_optimal"] >= row["bits"]
    assert row["low"] > row["chance"] == 0.5


def test_random_masks_have_chance_in_their_interval():
    labels = torch.arange(400) % 4
    predictions = classified(Key(5).uniform(range(400), (12, 12)), labels, 0.5)
    row = mask_table({("random", 0.5): [predictions]}, ("morf",), (0.5,)).iloc[0]
    # 400 images, chance .25: the 95 % interval is about ±.04, and no mask is classified by a network trained on it.
    assert row["low"] <= row["chance"] == 0.25 <= row["high"]


def test_a_mask_and_its_complement_have_the_same_accuracy(leaking):
    world = worlds.sides(n=240)
    complement = classified(-world.truth, world.labels, 0.8)
    assert complement.correct.mean() == pytest.approx(leaking.correct.mean(), abs=0.03)


def test_each_image_is_tested_once_and_folds_are_stratified():
    labels = np.repeat([0, 1, 2], [50, 30, 20])
    parts = list(folds(labels, Key(0)))
    assert sorted(np.concatenate([test for _, test in parts])) == list(range(100))
    for train, test in parts:
        assert not set(train) & set(test)
        assert len(train) + len(test) == 100
        assert list(np.bincount(labels[test])) == [50 // FOLDS, 30 // FOLDS, 20 // FOLDS]


def test_a_learning_curve_tests_all_masks_and_trains_on_a_quarter_and_half_of_them():
    labels = np.repeat([0, 1], [80, 40])
    for every in (4, 2):
        parts = list(folds(labels, Key(0), every))
        assert sorted(np.concatenate([test for _, test in parts])) == list(range(120))
        # 4 of 5 folds with 16 and 8 masks of the two classes
        assert all(np.bincount(labels[train]).tolist() == [64 // every, 32 // every] for train, _ in parts)
    world = worlds.sides(n=60)
    quarter, half = learning_curve(world.truth == 1, world.labels, torch.arange(60), Key(0), SMALL)
    assert len(quarter) == len(half) == 60
    assert not np.array_equal(quarter.probability, half.probability)


def test_the_same_key_gives_the_same_predictions_and_leaves_torchs_generator_alone():
    world, state = worlds.sides(n=40), torch.get_rng_state()
    first, second = (classified(world.truth, world.labels, 0.2) for _ in range(2))
    assert np.array_equal(first.probability, second.probability)
    assert torch.equal(torch.get_rng_state(), state)


def test_predictions_use_the_given_labels():
    world = worlds.sides(n=80)
    named = torch.where(world.labels == 1, 7, 3)
    predictions = classified(world.truth, named, 0.2)
    assert set(predictions.predicted) == {3, 7}
    assert np.array_equal(predictions.labels, named.numpy())
    blind = classified(Key(5).uniform(range(80), (12, 12)), named, 0.5)  # about half correct: both cases occur
    assert 0 < blind.correct.sum() < 80
    assert np.array_equal(blind.correct, blind.probability > 0.5)  # two classes: the likelier one is predicted


def test_the_epoch_is_selected_on_validation_masks():
    epochs = []
    masks = Key(5).uniform(range(50), (12, 12)) < 0.5
    classify_masks(masks, torch.arange(50) % 2, torch.arange(50), Key(0), SMALL, on_epoch=epochs.append)
    # A fold trains on 40 masks, of which 15 %, 6, are validation: their accuracy is a multiple of one sixth.
    sixths = 6 * np.array([epoch.measure for epoch in epochs])
    assert len(sixths) == FOLDS * SMALL.recipe.epochs
    assert np.allclose(sixths, np.round(sixths))
    assert len(set(np.round(sixths))) > 2
    assert {epoch.images for epoch in epochs} == {34}


def test_a_last_batch_of_one_mask_is_skipped():
    # 10 masks: 8 for training, 1 of them for validation, 7 left, in batches of 6 and 1; 6×6 pixels are pooled down to
    # one value, which has no variance.
    classifier = replace(SMALL, recipe=replace(SMALL.recipe, batch_size=6, epochs=1))
    masks = Key(5).uniform(range(10), (6, 6)) < 0.5
    epochs = []
    classify_masks(masks, torch.arange(10) % 2, torch.arange(10), Key(0), classifier, on_epoch=epochs.append)
    assert [epoch.images for epoch in epochs] == [6] * FOLDS


def test_identical_masks_predict_the_majority_class_without_training():
    labels = torch.tensor([0, 1, 1, 2, 1, 0, 2, 1, 1, 1])
    same = torch.zeros(10, 6, 6, dtype=torch.bool)
    epochs = []
    predictions = classify_masks(same, labels, torch.arange(10), Key(0), SMALL, on_epoch=epochs.append)
    assert epochs == []
    row = mask_table({("m", 0.5): [predictions]}, ("morf",), (0.5,)).iloc[0]
    assert row["accuracy"] == row["chance"] == 0.6  # class 1 has 6 of 10
    assert row["bits"] == pytest.approx(0)
    assert "the same prediction" in row["note"]


def test_large_masks_are_averaged_down():
    removed = torch.zeros(1, 64, 48, dtype=torch.bool)
    removed[:, :2, :1] = True
    inputs = _inputs(removed, 32)
    assert inputs.shape == (1, 1, 32, 32)
    # Cell 0 covers 2 rows and (48 columns to 32 cells) columns 0 and 1: half of it is removed.
    assert inputs[0, 0, 0, 0] == 0
    assert inputs[0, 0, 5, 5] == -1
    assert _inputs(removed[:, :20, :20], 32).shape == (1, 1, 20, 20)


@pytest.mark.parametrize("name", MASK_CLASSIFIERS)
def test_every_mask_classifier_accepts_masks_of_any_size(name):
    for size in ((5, 7), (32, 32)):
        with torch.no_grad():
            assert MASK_CLASSIFIERS[name].make(3).eval()(torch.ones(2, 1, *size)).shape == (2, 3)


def test_too_few_classes_or_images_raise_errors_that_name_the_number_needed():
    with pytest.raises(InputError, match=r"all 9 images are of class 4.*at least two classes"):
        check_classes(np.full(9, 4))
    with pytest.raises(InputError, match=r"8 images of 10 classes.*give 20 images"):
        check_classes(np.arange(8) % 3, known=10)
    with pytest.raises(InputError, match="least two images per class"):
        check_classes(np.arange(12) % 7)
    with pytest.raises(InputError, match=f"and {2 * FOLDS} in all; give {2 * FOLDS} images"):
        check_classes(np.arange(9) % 2)
    check_classes(np.arange(10) % 2)
    check_classes(np.arange(20) % 10, known=10)
