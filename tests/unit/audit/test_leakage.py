"""The reader of images imputed with the masks of others: it finds what leaks, and nothing else."""

import numpy as np
import pytest
import torch
from scipy.ndimage import gaussian_filter

import roadworthy as rw
from roadworthy.audit.leakage import leak_through, mask_features
from roadworthy.audit.mask_detection import mask_detector
from roadworthy.audit.reader import FOLDS, PERMUTATIONS, Reading, others, partition, read
from roadworthy.audit.tables import LeakageSetting, conclusion_table
from roadworthy.core.masks import removed_at
from roadworthy.core.random import Key
from roadworthy.datasets import Arrays


def photographs(n, size=16):
    """Smooth colors with some grain, as in photographs; they do not depend on any label."""
    smooth = torch.from_numpy(gaussian_filter(Key(1).normal(range(n), (3, size, size)).numpy(), 2, axes=(2, 3)))
    return (0.5 + 0.2 * smooth / smooth.std() + 0.02 * Key(2).normal(range(n), (3, size, size))).clamp(0, 1)


def one_half(labels, size=16):
    """Maps that are random in the left half for class 0, in the right half for class 1, and below that elsewhere."""
    right = torch.arange(size) >= size // 2
    own = (right[None] == (labels[:, None] == 1))[:, None]
    return Key(3).uniform(range(len(labels)), (size, size)) + own.float()


@pytest.mark.filterwarnings("ignore::roadworthy.core.errors.LowAccuracyWarning")  # labels are random
def test_class_dependent_scatter_leaks_through_linear_imputation():
    # The audit called this leak-free: 10 % scattered in one half, which single pixels hardly show. A reader adds up.
    n = 160
    labels = (Key(4).uniform(range(n), (1,))[:, 0] < 0.5).long()
    comparison = rw.compare(
        lambda images: images.mean(dim=(2, 3))[:, :2], (photographs(n), labels), {"half": one_half(labels)},
        fractions=(0.1,), controls=("random",), progress=False,
    )  # fmt: skip
    table = comparison.audit(fractions=(0.1,), progress=False).conclusions().set_index(["method", "order"])
    half, random = table.loc["half", "morf"], table.loc["random", "morf"]
    assert half["conclusion"].startswith("leak found: at least 0.")
    # An accuracy of 69 % proves 1 − H₂(.69) = .11 bits.
    assert half["low"] > 0.1
    assert half["fraction"] == 0.1
    assert random["conclusion"] == "none found with 160 masks"


def redrawn(batch, removed, key):
    """Noise images whose removed pixels are drawn again from the same noise: the mask cannot be seen."""
    fresh = key.fold("again").uniform(batch.ids, tuple(batch.images.shape[1:]))
    return torch.where(removed[:, None], fresh, batch.images)


def found(imputer, labels, masks, images, key=Key(0)):  # noqa: B008  a frozen value
    with key.torch_rng():
        network = mask_detector(images.shape[1]).eval()
    readings = leak_through(network, imputer, Arrays(images, labels), lambda rows: [masks[rows]], labels, key)
    return conclusion_table({LeakageSetting("m", "morf", "i", 0.1): readings[0]}).iloc[0]


def test_masks_that_determine_the_class_do_not_leak_where_nothing_reveals_them():
    labels = torch.arange(100) % 2
    images = Key(5).uniform(range(100), (1, 12, 12))
    ranks = one_half(labels, 12).flatten(1).argsort(dim=1, descending=True).argsort(dim=1).reshape(100, 12, 12)
    masks = removed_at(ranks, 0.1)
    assert not found(redrawn, labels, masks, images)["found"]
    assert found(rw.Constant(3.0), labels, masks, images)["found"]  # a color that no pixel has; no training is needed


def test_the_class_of_the_imputed_image_itself_does_not_count():
    # Images that are black or white by class, and random masks: all is known about image k, nothing about mask i.
    labels = torch.arange(100) % 2
    images = labels[:, None, None, None].float().expand(-1, 1, 8, 8).clone()
    masks = Key(6).uniform(range(100), (8, 8)) < 0.3
    row = found(rw.Constant(0.5), labels, masks, images)
    assert not row["found"]
    assert abs(row["accuracy"] - 0.5) < 0.2  # four standard errors of 100 masks


def test_an_other_image_is_of_the_same_fold_and_its_class_is_independent():
    labels = np.repeat([0, 1, 2], [20, 12, 8])
    parts = partition(labels, Key(0))
    same = np.zeros(3)
    for draw in range(400):
        partner = others(labels, parts, Key(draw))
        assert (partner != np.arange(40)).all()
        assert (parts.fold[partner] == parts.fold).all()
        same += [(labels[partner[labels == label]] == label).mean() / 400 for label in range(3)]
    # A fold has about 4, 2.4 and 1.6 of its 8 images in the classes. Without replacement by the same class the shares
    # would be 3/7, 1.4/7, .6/7 = .43, .20, .09. A class with one image in a fold has no other: a little less for it.
    assert same[0] == pytest.approx(0.5, abs=0.02)
    assert same[1] == pytest.approx(0.3, abs=0.03)


def test_folds_and_quarters_are_stratified():
    labels = np.repeat([0, 1], [80, 40])
    parts = partition(labels, Key(0))
    for fold in range(FOLDS):
        assert np.bincount(labels[parts.fold == fold]).tolist() == [16, 8]
        assert np.bincount(labels[(parts.fold == fold) & (parts.place % 4 == 0)]).tolist() == [4, 2]


def test_a_row_is_predicted_by_a_reader_that_was_not_fitted_on_it():
    # Every row has a feature of its own: a reader that knows the row would be right, others can only guess.
    labels = np.arange(40) % 2
    reading = read([torch.eye(40)], labels, partition(labels, Key(0)), Key(0))
    assert (reading.predicted[-1] == labels).mean() < 0.8  # 40 guesses: 4 standard errors


def test_more_rows_predict_better_and_permuted_labels_are_at_chance():
    labels = np.arange(400) % 4
    features = torch.from_numpy(np.eye(4)[labels]).float() + 2 * Key(0).normal(range(400), (4,))
    features = torch.cat([features, Key(1).normal(range(400), (60,))], dim=1)
    reading = read([features], labels, partition(labels, Key(0)), Key(0))
    quarter, _, whole = (reading.predicted == labels).mean(axis=1)
    assert 0.25 < quarter < whole
    assert len(reading.null) == PERMUTATIONS
    # Chance is 100 of 400; a mean of 99 permutations has a standard error of about 1.
    assert reading.null.mean() == pytest.approx(100, abs=5)


def test_the_same_key_gives_the_same_reading():
    labels, features = np.arange(30) % 2, Key(0).normal(range(30), (5,))
    first, second = (read([features], labels, partition(labels, Key(0)), Key(0)) for _ in range(2))
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


def test_features_without_variation_predict_the_majority():
    labels = np.repeat([0, 1], [15, 5])
    reading = read([torch.ones(20, 3)], labels, partition(labels, Key(0)), Key(0))
    assert set(reading.predicted[-1]) == {0}
    row = conclusion_table({LeakageSetting("m", "morf", "i", 0.1): reading}).iloc[0]
    assert not row["found"]


def test_features_sum_evidence_over_cells_at_any_size():
    network = mask_detector(1).eval()
    # 3 maps in 4×4 and 8×8 cells, one in 16×16, 32 hidden channels in 2×2: 48 + 192 + 256 + 128
    assert mask_features(network, torch.rand(2, 1, 20, 17)).shape == (2, 624)
    # 5×7: 3 · (4·4 + 5·7) + 5·7 + 32 · 4
    assert mask_features(network, torch.rand(2, 1, 5, 7)).shape == (2, 153 + 35 + 128)


def reading(correct, images=1000, classes=2, curve=(0, 0), null=0.5):
    """A reader that is right on the first `correct` of balanced images; permuted labels give about `null`."""
    labels = np.arange(images) % classes
    predicted = [np.where(np.arange(images) < right, labels, (labels + 1) % classes) for right in (*curve, correct)]
    spread = np.linspace(-2, 2, PERMUTATIONS) * np.sqrt(images * null * (1 - null))
    return Reading(labels, np.stack(predicted), np.rint(images * null + spread).astype(np.int64))


def concluded(**readings):
    settings = {LeakageSetting("m", "morf", "i", float(name[1:]) / 100): row for name, row in readings.items()}
    return conclusion_table(settings).iloc[0]


def test_a_leak_is_reported_in_bits_with_an_interval_and_its_learning_curve():
    row = concluded(f10=reading(890, curve=(700, 800)))
    # Wilson for 890 of 1000: .869 to .908; 1 − H₂ of .869, .89, .908 = .440, .500, .557
    assert row["conclusion"] == "leak found: at least 0.50 bits [0.44, 0.56]"
    assert "with 250, 500 and 1,000 masks 70%, 80%, 89%" in row["why"]
    assert "still rising" in row["why"]
    assert row["rising"]
    # No permutation reaches 890: one of 100 labelings, the true one, is as good.
    assert row["p"] == 0.01


def test_a_curve_that_is_flat_is_not_said_to_rise():
    row = concluded(f10=reading(890, curve=(880, 889)))
    assert not row["rising"]
    assert "rising" not in row["why"]


def test_finding_nothing_is_never_an_all_clear():
    row = concluded(f10=reading(510, curve=(500, 505)))
    assert row["conclusion"] == "none found with 1,000 masks"
    assert not row["found"]
    assert "not clearly more" in row["why"]


def test_the_fraction_with_the_clearest_finding_is_reported_and_the_choice_is_allowed_for():
    row = concluded(f10=reading(520), f50=reading(700), f90=reading(600))
    assert row["fraction"] == 0.5
    alone = concluded(f50=reading(700))
    assert row["low"] < alone["low"] < alone["high"] < row["high"]  # an interval of 98.3 % instead of 95 %


def test_three_fractions_give_no_more_false_alarms_than_one():
    # At each fraction 4 of 99 permutations, other ones each time, reach 540 hits: p = .05 alone, 13/100 together.
    def one(start):
        row = reading(540)
        null = np.full(PERMUTATIONS, 500)
        null[50:] = np.linspace(480, 520, PERMUTATIONS - 50).round()
        null[start : start + 4] = 545
        return row._replace(null=null)

    assert concluded(f10=one(0))["p"] == pytest.approx(0.05)
    together = concluded(f10=one(0), f50=one(10), f90=one(20))
    assert together["p"] == pytest.approx(0.13)
    assert not together["found"]
