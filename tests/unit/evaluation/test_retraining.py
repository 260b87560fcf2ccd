"""Evaluators that train: what leaks, what is reproducible, what is never read, and errors before the first epoch."""

from dataclasses import replace

import pytest
import torch
from torch import nn

import worlds
from roadworthy.core.errors import (
    InputError,
    RangeError,
    SameStartWarning,
    ShapeError,
    TrainingError,
    TrainTestOverlapWarning,
)
from roadworthy.core.random import Key
from roadworthy.core.types import Batch
from roadworthy.datasets import Arrays
from roadworthy.evaluation.checks import check_apart, check_splits
from roadworthy.evaluation.no_retrain import NoRetrain
from roadworthy.evaluation.orders import least_relevant_first, most_relevant_first
from roadworthy.evaluation.retraining import FineTuned, Mapped, Retrain, random_masks
from roadworthy.evaluation.sweep import Curve, sweep
from roadworthy.imputers import Constant, DatasetMean, NoisyLinear
from roadworthy.models.normalized import Normalized, as_model
from roadworthy.training.checkpoints import CheckpointFile
from roadworthy.training.recipe import Recipe
from roadworthy.training.trainer import Trainer, accuracy, readable, split

TRAIN, TEST = worlds.sides(200), worlds.sides(100, start=1000)
TRAIN_DATA = Arrays(TRAIN.images, TRAIN.labels)
TEST_DATA = Arrays(TEST.images, TEST.labels, ids=range(1000, 1100))
BLOCK = 30 / 144
"""the fraction of pixels that the truth marks"""
MORF, LERF = most_relevant_first, least_relevant_first
FIXED, LINEAR = DatasetMean.of(TRAIN_DATA), NoisyLinear()
SHORT = Recipe(epochs=6, batch_size=32, lr=5e-3)


def network():
    return nn.Sequential(
        nn.Conv2d(1, 8, 5, padding=2), nn.ReLU(), nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.AdaptiveMaxPool2d(2),
        nn.Flatten(), nn.Dropout(0.1), nn.Linear(64, 2),
    )  # fmt: skip


def evaluator(recipe=SHORT, **options):
    return Retrain(recipe, Mapped(TRAIN_DATA, TRAIN.truth), network, **options)


def accuracy_of(model, imputer, fraction, order=MORF, key=Key(0)):  # noqa: B008  a value
    """On the imputed test images."""
    (batch,) = TEST_DATA.batches(100)
    curve = Curve("order", "imputer", "retrain", key.seed)
    ((_, _, predicted),) = sweep(
        {curve: [fraction]},
        {"order": order},
        {"imputer": imputer},
        {curve: NoRetrain(model)},
        TEST.truth,
        batch,
        batch.labels,
        64,
    )
    return predicted.correct.mean()


def retrained_accuracy(imputer, fraction, order=MORF):
    return accuracy_of(evaluator().fit(order, imputer, fraction, Key(0)).model, imputer, fraction, order)


def weights(model):
    return torch.cat([tensor.flatten().double() for tensor in model.state_dict().values()])


# ── the paper's effect ───────────────────────────────────────────────────────────────────────────────────────────────


def test_with_fixed_imputation_retraining_reads_the_class_off_the_mask_and_with_linear_imputation_it_cannot():
    # The block alone shows the class, and none of its pixels is left; the removed region still is left or right.
    assert retrained_accuracy(FIXED, 0) > 0.95
    assert retrained_accuracy(FIXED, BLOCK) > 0.95
    # Linear imputation continues the plane with noise like its own, so only guessing is left: 50 of 100 images
    # (standard deviation 5 %, so within 15 %).
    assert retrained_accuracy(LINEAR, BLOCK) < 0.65


def test_in_kar_the_relevant_pixels_are_kept_and_accuracy_stays_high_with_both_imputers():
    for imputer in (FIXED, LINEAR):
        assert retrained_accuracy(imputer, 0.5, LERF) > 0.95


# ── what is reproducible ─────────────────────────────────────────────────────────────────────────────────────────────


def test_a_rerun_gives_the_same_weights_and_another_seed_does_not():
    first, again = (evaluator().fit(MORF, LINEAR, 0.3, Key(0)) for _ in range(2))
    assert torch.equal(weights(first.model), weights(again.model))
    assert first.records == again.records
    assert not torch.equal(weights(first.model), weights(evaluator().fit(MORF, LINEAR, 0.3, Key(1)).model))


class Stop(Exception):
    pass


@pytest.mark.parametrize("recipe", [SHORT, replace(SHORT, optimizer="sgd", lr=0.05)], ids=["adam", "sgd"])
def test_killed_and_resumed_a_training_ends_with_the_weights_of_an_uninterrupted_one(tmp_path, recipe):
    uninterrupted = evaluator(recipe).fit(MORF, LINEAR, 0.3, Key(0))

    def stop(record):
        if record.epoch == 3:
            raise Stop

    with pytest.raises(Stop):  # in epoch 3, before its checkpoint: 0 to 2 are kept
        evaluator(recipe, checkpoint=tmp_path / "point", on_epoch=stop).fit(MORF, LINEAR, 0.3, Key(0))
    done = []
    resumed = evaluator(recipe, checkpoint=tmp_path / "point", on_epoch=done.append).fit(MORF, LINEAR, 0.3, Key(0))
    assert [record.epoch for record in done] == [3, 4, 5]
    assert torch.equal(weights(resumed.model), weights(uninterrupted.model))
    assert resumed.records == uninterrupted.records


def test_a_checkpoint_is_used_only_if_intact_and_of_this_training(tmp_path):
    tensors = {"a": torch.arange(3.0), "curve": torch.zeros(1, 5, dtype=torch.float64)}
    file = CheckpointFile(tmp_path / "one", "this")
    assert file.read() is None
    file.write(tensors)
    assert torch.equal(file.read()["a"], tensors["a"])
    assert CheckpointFile(file.path, "another").read() is None
    content = file.path.read_bytes()
    for broken in (content[:-3], b"", content[:-1] + bytes([content[-1] ^ 1])):
        file.path.write_bytes(broken)
        assert file.read() is None


class Spy:
    """An imputer that records what it returned."""

    def __init__(self, imputer):
        self.imputer, self.made = imputer, []

    def __call__(self, batch, removed, key):
        self.made.append((key.path, batch.ids.tolist(), self.imputer(batch, removed, key)))
        return self.made[-1][2]

    def image(self, epoch, id=7):
        """The image `id` as it was trained on in an epoch."""
        (found,) = [
            images[ids.index(id)] for path, ids, images in self.made if path[-1] == epoch and id in ids and len(ids) > 4
        ]
        return found


def test_noise_is_fresh_in_every_epoch_and_the_same_in_a_rerun_and_the_mask_stays():
    runs = [Spy(NoisyLinear()) for _ in range(2)]
    for spy in runs:
        evaluator(replace(SHORT, epochs=2, select="last")).fit(MORF, spy, 0.3, Key(0))
    first, again = runs
    assert not torch.equal(first.image(0), first.image(1))
    assert torch.equal(first.image(0), again.image(0))
    assert torch.equal(first.image(1), again.image(1))
    kept = [image == TRAIN.images[7] for image in (first.image(0), first.image(1))]
    assert torch.equal(*kept)  # 43 of 144 pixels are removed, the same ones: ties are broken once
    assert int((~kept[0]).sum()) == 43


def test_without_noise_images_are_imputed_once_and_not_per_epoch():
    spy = Spy(Constant(0.5))
    evaluator(replace(SHORT, epochs=5)).fit(MORF, spy, 0.3, Key(0))
    assert sum(len(ids) for _, ids, _ in spy.made) == 4 + 4 + 200  # 4 images twice to see whether they differ, then all


def test_augmentation_comes_after_imputation_and_is_keyed_by_epoch():
    seen = []

    def augment(images, ids, key):
        seen.append((key.path[-1], float(images.min())))
        return images.flip(-1)

    evaluator(replace(SHORT, epochs=2), augment=augment).fit(MORF, Constant(-9.0), 0.3, Key(0))
    assert {epoch for epoch, _ in seen} == {0, 1}
    assert all(least == -9 for _, least in seen)


# ── selection ────────────────────────────────────────────────────────────────────────────────────────────────────────


class Untouchable:
    """Test data that must not be read."""

    classes, ids = (), torch.arange(100)

    def __len__(self):
        return 100

    def batches(self, size):
        raise AssertionError("the test images were read")


def test_the_test_images_are_read_only_by_best_on_test():
    hidden = Mapped(Untouchable(), TEST.truth)
    for select in ("validation", "last"):
        evaluator(replace(SHORT, epochs=2, select=select), test=hidden).fit(MORF, LINEAR, 0.3, Key(0))
    with pytest.raises(AssertionError, match="the test images were read"):
        evaluator(replace(SHORT, epochs=2, select="best-on-test"), test=hidden).fit(MORF, LINEAR, 0.3, Key(0))


def test_best_on_test_is_the_highest_accuracy_on_the_imputed_test_set():
    leaky = evaluator(replace(SHORT, select="best-on-test"), test=Mapped(TEST_DATA, TEST.truth))
    result = leaky.fit(MORF, FIXED, BLOCK, Key(0))
    assert max(record.measure for record in result.records) == accuracy_of(result.model, FIXED, BLOCK)
    assert result.records[0].images == 200  # nothing is held out


def test_validation_images_are_held_out_by_key_and_shared_by_all_points():
    learned, held = split(200, SHORT, Key(0))
    assert (len(learned), len(held)) == (180, 20)  # a tenth
    assert sorted([*learned, *held]) == list(range(200))
    assert list(split(200, SHORT, Key(0))[1]) == list(held)
    assert list(split(200, SHORT, Key(1))[1]) != list(held)
    assert len(split(200, replace(SHORT, select="last"), Key(0))[1]) == 0
    result = evaluator(replace(SHORT, epochs=1)).fit(MORF, FIXED, BLOCK, Key(0))
    assert result.records[0].images == 180


# ── random masks ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_random_masks_remove_a_random_fraction_below_the_largest():
    batch = Batch(torch.arange(400), torch.zeros(400, 1, 12, 12), torch.zeros(400, dtype=torch.int64))
    removed = random_masks(batch, 0.9, Key(0))
    removed_fractions = removed.flatten(1).float().mean(dim=1)
    # uniform on [0, .9): mean .45, standard deviation .26, of the mean of 400 .013
    assert float(removed_fractions.mean()) == pytest.approx(0.45, abs=0.05)
    assert 0.8 < float(removed_fractions.max()) <= 0.9
    assert float(removed_fractions.min()) < 0.1
    assert torch.equal(random_masks(batch[3:5], 0.9, Key(0)), removed[3:5])
    assert not torch.equal(random_masks(batch, 0.9, Key(1)), removed)


def test_fine_tuning_starts_from_the_given_model_and_leaves_it_unchanged():
    given = as_model(network())
    before, epochs = weights(given), []
    tuned = FineTuned(replace(SHORT, epochs=3), TRAIN_DATA, given, on_epoch=epochs.append)
    fixed = tuned.fit(FIXED, Key(0)).model
    assert len(epochs) == 3
    assert torch.equal(weights(given), before)
    assert not torch.equal(weights(fixed), before)
    linear = tuned.fit(LINEAR, Key(0)).model
    # Masks had every fraction, so unmodified images are recognized. No mask of an explanation was learned, so with the
    # block removed and imputed linearly the model can only guess.
    assert accuracy_of(fixed, FIXED, 0) > 0.9
    assert accuracy_of(linear, LINEAR, BLOCK) < 0.65


def test_a_warm_start_trains_a_copy_of_the_given_model_on_the_masks_of_the_point():
    with Key(5).torch_rng():
        given = as_model(network())
    before, one_step = weights(given), replace(SHORT, epochs=1, lr=1e-12, select="last")
    warm = Retrain(one_step, Mapped(TRAIN_DATA, TRAIN.truth), start=given)
    # With a vanishing learning rate only the start counts: the given weights, whatever the seed.
    for seed in (0, 1):
        assert torch.allclose(weights(warm.fit(MORF, LINEAR, BLOCK, Key(seed)).model), before, atol=1e-9)
    # The masks show the class, and that is what is learned; before, the model guesses (50 of 100, deviation 5).
    learned = replace(warm, recipe=SHORT).fit(MORF, FIXED, BLOCK, Key(0)).model
    assert accuracy_of(given, FIXED, BLOCK) < 0.65
    assert accuracy_of(learned, FIXED, BLOCK) > 0.95
    assert torch.equal(weights(given), before)


# ── errors before training ───────────────────────────────────────────────────────────────────────────────────────────


def test_a_factory_must_give_a_new_network_each_time():
    same = network()
    with pytest.raises(InputError, match="returned the same network twice"):
        Retrain(SHORT, Mapped(TRAIN_DATA, TRAIN.truth), lambda: same)
    with pytest.raises(InputError, match="returned the same network twice"):
        Retrain(SHORT, Mapped(TRAIN_DATA, TRAIN.truth), lambda: Normalized(same))

    def trained():
        torch.manual_seed(3)
        return network()

    with pytest.warns(SameStartWarning, match="the same weights under every seed"):
        Retrain(SHORT, Mapped(TRAIN_DATA, TRAIN.truth), trained)


def test_a_class_that_is_tested_but_not_learned_is_named():
    ones = Arrays(TRAIN.images[1::2], TRAIN.labels[1::2])
    test = Arrays(TEST.images, TEST.labels, classes=("left", "right"))
    with pytest.raises(InputError, match=r"no image of left \(1 class\(es\)"):
        check_splits(ones, test)
    check_splits(TRAIN_DATA, TEST_DATA)  # no complaint


def test_an_image_in_both_splits_is_named():
    mixed = Arrays(torch.cat([TEST.images[:3], TRAIN.images[5:6]]), torch.zeros(4).long(), ids=[70, 71, 72, 73])
    with pytest.warns(TrainTestOverlapWarning, match=r"1 of 4 test images .* \(test image 73 is train image 5\)"):
        check_splits(TRAIN_DATA, mixed)
    with pytest.raises(InputError, match=r"test image 73 is train image 5.*imputer"):
        check_apart(TRAIN_DATA, mixed)
    check_apart(TRAIN_DATA, TEST_DATA)


@pytest.mark.parametrize(
    ("make", "error", "complaint"),
    [
        (lambda: Recipe(epochs=0), RangeError, "epochs=0"),
        (lambda: Mapped(TRAIN_DATA, TRAIN.truth[:5]), ShapeError, "5 maps for 200 images"),
        (lambda: evaluator(replace(SHORT, select="best-on-test")), InputError, "needs test=Mapped"),
        (lambda: Retrain(SHORT, Mapped(Arrays(TRAIN.images), TRAIN.truth), network), InputError, "without a label"),
        (lambda: Retrain(SHORT, Mapped(TRAIN_DATA, TRAIN.truth)), InputError, "network=.* or start="),
        (lambda: evaluator(start=as_model(network())), InputError, "network=.* or start="),
        (lambda: FineTuned(SHORT, TRAIN_DATA, as_model(network()), largest=1), RangeError, "largest=1"),
        (
            lambda: FineTuned(replace(SHORT, select="best-on-test"), TRAIN_DATA, as_model(network())),
            InputError,
            "is for retraining",
        ),
        (lambda: split(1, SHORT, Key(0)), RangeError, "validation needs at least 2"),
    ],
)
def test_invalid_input_is_an_error_with_its_value(make, error, complaint):
    with pytest.raises(error, match=complaint):
        make()


@pytest.mark.parametrize(("lr", "problem"), [(1e25, "became nan|became inf"), (30.0, "training diverged|became nan")])
def test_a_training_that_diverges_names_its_point(lr, problem):
    wild = evaluator(Recipe(epochs=2, lr=lr, optimizer="sgd"))
    with pytest.raises(TrainingError, match=rf"fraction 0.3, seed 4 failed: .*({problem})"):
        wild.fit(MORF, LINEAR, 0.3, Key(4))


def test_accuracy_counts_every_image_and_large_sets_are_read_at_random(monkeypatch):
    batches = [(TEST.images[:60], TEST.labels[:60]), (TEST.images[60:], 1 - TEST.labels[60:])]
    assert accuracy(as_model(TEST.model), batches) == 0.6  # the second 40 have the wrong labels
    monkeypatch.setattr("roadworthy.training.trainer._MAX_CACHED", 10)
    assert readable(TRAIN_DATA) is TRAIN_DATA
    spy = Spy(Constant(0.5))
    trainer = Trainer(replace(SHORT, epochs=2), TRAIN_DATA, lambda batch, rows, key: spy(batch, None, key), Key(0))
    monkeypatch.setattr(spy, "imputer", lambda batch, removed, key: batch.images)
    trainer.train(as_model(network()))
    assert sum(len(ids) for _, ids, _ in spy.made) == 4 + 4 + 2 * 200  # nothing is cached: every epoch imputes again
