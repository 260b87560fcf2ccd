"""Reading masks: worlds in which they tell all or nothing, and what cannot be asked."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import worlds
from roadworthy.audit.mask_information import FOLDS, READERS, _inputs, check_classes, folds, read_masks
from roadworthy.audit.tables import mask_table
from roadworthy.core.errors import InputError
from roadworthy.core.masks import removed_at
from roadworthy.core.random import Key
from roadworthy.evaluation.orders import most_relevant_first

SMALL = READERS["small"]


def read(scores, labels, fraction, key=Key(0)):  # noqa: B008  a frozen value
    ids = torch.arange(len(labels))
    return read_masks(removed_at(most_relevant_first(scores, ids, key), fraction), labels, ids, key, SMALL)


@pytest.fixture(scope="module")
def leaking():
    """The block's place is the class, and the truth removes the block first: masks at 20 % tell left from right."""
    world = worlds.sides(n=240)
    return read(world.truth, world.labels, 0.2)


def test_a_class_leaking_map_gives_the_class_away_and_its_bits_are_those_of_the_class(leaking):
    row = mask_table({("truth", 0.2): leaking}, ("morf",), (0.2,)).iloc[0]
    assert row["accuracy"] > 0.97
    # H(C) = 1 bit for two equal classes; an accuracy of .97 proves 1 − H₂(.97) = .81 of it.
    assert row["class_bits"] == 1
    assert row["bits"] > 0.8
    assert row["bits_if_optimal"] >= row["bits"]
    assert row["low"] > row["chance"] == 0.5


def test_random_masks_give_chance_within_the_interval():
    labels = torch.arange(400) % 4
    prediction = read(Key(5).uniform(range(400), (12, 12)), labels, 0.5)
    row = mask_table({("random", 0.5): prediction}, ("morf",), (0.5,)).iloc[0]
    # 400 images, chance .25: the 95 % interval is about .04 to either side, and no mask is told by one that saw it.
    assert row["low"] <= row["chance"] == 0.25 <= row["high"]


def test_a_mask_and_its_complement_are_read_alike(leaking):
    world = worlds.sides(n=240)
    upside_down = read(-world.truth, world.labels, 0.8)
    assert upside_down.correct.mean() == pytest.approx(leaking.correct.mean(), abs=0.03)


def test_each_image_is_held_out_once_and_classes_are_spread_over_the_folds():
    labels = np.repeat([0, 1, 2], [50, 30, 20])
    parts = list(folds(labels, Key(0)))
    assert sorted(np.concatenate([held for _, held in parts])) == list(range(100))
    for learned, held in parts:
        assert not set(learned) & set(held)
        assert len(learned) + len(held) == 100
        assert list(np.bincount(labels[held])) == [50 // FOLDS, 30 // FOLDS, 20 // FOLDS]


def test_the_same_key_reads_the_same_and_torchs_generator_is_left_alone():
    world, state = worlds.sides(n=40), torch.get_rng_state()
    first, second = (read(world.truth, world.labels, 0.2) for _ in range(2))
    assert np.array_equal(first.probability, second.probability)
    assert torch.equal(torch.get_rng_state(), state)


def test_the_verdict_speaks_of_the_users_labels_in_their_order():
    world = worlds.sides(n=80)
    named = torch.where(world.labels == 1, 7, 3)
    prediction = read(world.truth, named, 0.2)
    assert set(prediction.predicted) == {3, 7}
    assert np.array_equal(prediction.labels, named.numpy())
    blind = read(Key(5).uniform(range(80), (12, 12)), named, 0.5)  # right in about half: both answers are looked at
    assert 0 < blind.correct.sum() < 80
    assert np.array_equal(blind.correct, blind.probability > 0.5)  # two classes: the likelier one is said


def test_the_epoch_is_chosen_on_masks_that_were_not_learned_from():
    epochs = []
    masks = Key(5).uniform(range(50), (12, 12)) < 0.5
    read_masks(masks, torch.arange(50) % 2, torch.arange(50), Key(0), SMALL, on_epoch=epochs.append)
    # A fold learns from 40 masks, of which 15 %, 6, are held out: an accuracy on these is a number of sixths.
    sixths = 6 * np.array([epoch.measure for epoch in epochs])
    assert len(sixths) == FOLDS * SMALL.recipe.epochs
    assert np.allclose(sixths, np.round(sixths))
    assert len(set(np.round(sixths))) > 2
    assert {epoch.images for epoch in epochs} == {34}


def test_a_last_batch_of_one_tiny_mask_is_left_out():
    # 10 masks: 8 to learn from, 1 of them held out, 7 left, in batches of 6 and 1; 6×6 pixels are halved down to one,
    # and one value has no variance.
    reader = replace(SMALL, recipe=replace(SMALL.recipe, batch_size=6, epochs=1))
    masks = Key(5).uniform(range(10), (6, 6)) < 0.5
    epochs = []
    read_masks(masks, torch.arange(10) % 2, torch.arange(10), Key(0), reader, on_epoch=epochs.append)
    assert [epoch.images for epoch in epochs] == [6] * FOLDS


def test_masks_that_are_all_equal_tell_nothing_and_cost_nothing():
    labels = torch.tensor([0, 1, 1, 2, 1, 0, 2, 1, 1, 1])
    same = torch.zeros(10, 6, 6, dtype=torch.bool)
    epochs = []
    prediction = read_masks(same, labels, torch.arange(10), Key(0), SMALL, on_epoch=epochs.append)
    assert epochs == []
    row = mask_table({("m", 0.5): prediction}, ("morf",), (0.5,)).iloc[0]
    assert row["accuracy"] == row["chance"] == 0.6  # class 1 has 6 of 10
    assert row["bits"] == pytest.approx(0)
    assert "all equal" in row["note"]


def test_large_masks_are_averaged_down():
    removed = torch.zeros(1, 64, 48, dtype=torch.bool)
    removed[:, :2, :1] = True
    inputs = _inputs(removed, 32)
    assert inputs.shape == (1, 1, 32, 32)
    # A cell of the grid covers 2 rows; columns 0 and 1 (48 columns to 32 cells: cell 0 is columns 0 to 1): half gone.
    assert inputs[0, 0, 0, 0] == 0
    assert inputs[0, 0, 5, 5] == -1
    assert _inputs(removed[:, :20, :20], 32).shape == (1, 1, 20, 20)


@pytest.mark.parametrize("name", READERS)
def test_every_reader_takes_masks_of_any_size_and_answers_with_classes(name):
    for size in ((5, 7), (32, 32)):
        with torch.no_grad():
            assert READERS[name].make(3).eval()(torch.ones(2, 1, *size)).shape == (2, 3)


def test_what_cannot_be_asked_is_said():
    with pytest.raises(InputError, match=r"all 9 images are of class 4.*at least two classes"):
        check_classes(np.full(9, 4))
    with pytest.raises(InputError, match=r"8 images of 10 classes.*take 20 images"):
        check_classes(np.arange(8) % 3, known=10)
    with pytest.raises(InputError, match="at least two images per class"):
        check_classes(np.arange(12) % 7)
    with pytest.raises(InputError, match=f"and {FOLDS} in all; take {FOLDS} images"):
        check_classes(np.arange(4) % 2)
    check_classes(np.arange(5) % 2)
    check_classes(np.arange(20) % 10, known=10)
