"""Detection of imputed pixels: colors that reveal every pixel, linear imputation that reveals fewer."""

import numpy as np
import pytest
import torch

import worlds
from roadworthy.audit.geometry import blurriness
from roadworthy.audit.mask_detection import (
    _auc,
    _same_color,
    detect,
    imputes_constant,
    train_mask_detector,
    train_test_rows,
)
from roadworthy.core.errors import InputError
from roadworthy.core.masks import MASKS, random_removal
from roadworthy.core.random import Key
from roadworthy.core.types import Batch
from roadworthy.imputers import Blur, Constant, DatasetMean, ImageMean, NoisyLinear


def planes(n, start=0, size=16):
    """Tilted planes, 0.1 to 0.7, with noise of 0.01: linear imputation continues them, with the same noise."""
    ids = torch.arange(start, start + n)
    down, right = torch.meshgrid(torch.linspace(-1, 1, size), torch.linspace(-1, 1, size), indexing="ij")
    tilt = Key(3).fold("tilt").uniform(ids, (3, 1, 1)) - 0.5
    plane = 0.4 + 0.2 * (tilt[:, :1] + tilt[:, 1:2] * down + tilt[:, 2:] * right)
    images = plane + 0.01 * Key(3).fold("noise").normal(ids, (1, size, size))
    return Batch(ids, images.clamp(0, 1), torch.zeros(n, dtype=torch.int64))


@pytest.fixture(scope="module")
def detections():
    """By imputer and pattern, half of the pixels removed."""
    results = {}
    for name, imputer in (("fixed", Constant(0.9)), ("linear", NoisyLinear())):
        network = train_mask_detector(imputer, planes(128), Key(0))
        test = planes(64, start=1000)
        for pattern in MASKS:
            removed = random_removal(test, pattern, 0.5, Key(1))
            results[name, pattern] = detect(network, imputer, test, removed, Key(0))
    return results


@pytest.mark.parametrize("pattern", MASKS)
def test_a_fixed_color_is_detected_and_imputation_like_the_image_far_less(detections, pattern):
    fixed, linear = detections["fixed", pattern], detections["linear", pattern]
    assert fixed.error.mean() < 0.03
    assert fixed.auc.mean() > 0.97
    # No detection: half of the pixels are misclassified and the AUC is ½; scattered imputed pixels are less noisy.
    assert linear.error.mean() > 0.35
    assert linear.auc.mean() < 0.7


def test_the_trivial_inverse_of_a_constant_imputer_is_wrong_only_where_the_image_has_that_color():
    images = torch.zeros(1, 1, 10, 10)
    images[:, :, :, 5:] = 0.7  # half of the image has the imputed color
    batch = Batch(torch.tensor([0]), images, torch.tensor([0]))
    removed = torch.zeros(1, 10, 10, dtype=torch.bool)
    removed[:, :3, :] = True  # 30 pixels
    detection = detect(torch.nn.Conv2d(1, 1, 1), Constant(0.0), batch, removed, Key(0))
    assert detection.trivial_error[0] == 7 * 5 / 100  # 7 kept rows, 5 black pixels in each
    assert detect(torch.nn.Conv2d(1, 1, 1), Constant(0.3), batch, removed, Key(0)).trivial_error[0] == 0


def test_only_imputers_of_one_color_per_image_have_a_trivial_inverse():
    batch = planes(6)
    assert all(
        imputes_constant(imputer, batch, Key(0)) for imputer in (Constant(0.3), DatasetMean((0.4,)), ImageMean())
    )
    others = (NoisyLinear(), NoisyLinear(noise=0), Blur())
    assert not any(imputes_constant(imputer, batch, Key(0)) for imputer in others)
    removed = random_removal(batch, "blobs", 0.5, Key(0))
    detection = detect(torch.nn.Conv2d(1, 1, 1), NoisyLinear(), batch, removed, Key(0))
    assert np.isnan(detection.trivial_error).all()


def test_every_channel_must_match_the_color():
    imputed = torch.tensor([[[[0.1, 0.1, 0.9]], [[0.2, 0.3, 0.2]]]])  # 1 image, 2 channels, 1×3 pixels
    removed = torch.tensor([[[True, False, False]]])
    assert _same_color(imputed, removed).tolist() == [[[True, False, False]]]


def test_the_auc_counts_pairs_of_an_imputed_and_a_kept_pixel():
    rng = np.random.default_rng(0)
    logits, removed = rng.integers(0, 5, (7, 20)).astype(float), rng.random((7, 20)) < 0.4
    for row, auc in enumerate(_auc(logits, removed)):
        pairs = [(a > b) + (a == b) / 2 for a in logits[row][removed[row]] for b in logits[row][~removed[row]]]
        assert auc == pytest.approx(np.mean(pairs))


def test_training_and_test_images_are_disjoint_and_fewer_if_large():
    train, test = train_test_rows(5000, (32, 32), Key(0))
    assert not set(train) & set(test)
    assert (len(train), len(test)) == (1024, 256)
    assert [len(rows) for rows in train_test_rows(5000, (1000, 1000), Key(0))] == [32, 32]
    assert [len(rows) for rows in train_test_rows(9, (32, 32), Key(0))] == [5, 4]
    with pytest.raises(InputError, match="at least one image to train on and one to test on"):
        train_test_rows(1, (32, 32), Key(0))


def test_the_same_key_trains_the_same_detector():
    first, second = (train_mask_detector(Constant(0.5), planes(8), Key(0)).state_dict() for _ in range(2))
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_the_detection_in_an_image_does_not_depend_on_the_others():
    test, imputer = planes(6, start=1000), Constant(0.5)
    network = train_mask_detector(imputer, planes(8), Key(0))
    removed = random_removal(test, "scatter", 0.5, Key(1))
    together = detect(network, imputer, test, removed, Key(0))
    alone = [detect(network, imputer, test[[row]], removed[[row]], Key(0)).auc.item() for row in range(6)]
    # Rounding in convolutions depends on the batch size and may swap two of 256 pixels.
    assert together.auc == pytest.approx(alone, abs=1e-3)


def test_an_image_gets_a_new_mask_each_time_of_any_fraction_and_both_kinds():
    recorded = []

    def recording(batch, removed, key):
        recorded.extend(removed[batch.ids == 0])
        return Constant(0.5)(batch, removed, key)

    train_mask_detector(recording, planes(3), Key(0))
    masks = torch.stack(recorded).float()
    assert len(masks) == 8 * 8  # epochs, and passes per epoch
    assert len(masks.unique(dim=0)) == len(masks)
    shares = masks.mean(dim=(1, 2))
    # Uniform below .95: none of 64 lies above .8 with probability (.8/.95)^64, 2 in 100,000; below .15 likewise.
    assert shares.min() < 0.15 < 0.8 < shares.max() < 0.96
    blur = blurriness(masks[(shares > 0.3) & (shares < 0.7)])
    # Neighbors in scatter are uncorrelated, with a standard error of 1/sqrt(480 pairs) = .046; blobs are smooth.
    assert (np.abs(blur) < 0.2).sum() > 3
    assert (blur > 0.5).sum() > 3


def test_a_removed_block_is_detected_in_a_fixed_color_and_not_where_linear_imputation_continues_the_plane():
    world = worlds.sides(n=120)
    batch = Batch(torch.arange(120), world.images, world.labels)
    removed = world.truth[60:] == 1  # the whole block: a plane is left, which linear imputation continues
    for imputer, low, high in ((DatasetMean((float(world.images.mean()),)), 0.99, 1.0), (NoisyLinear(), 0.3, 0.7)):
        network = train_mask_detector(imputer, batch[:60], Key(0))
        assert low <= detect(network, imputer, batch[60:], removed, Key(0)).auc.mean() <= high
