"""Telling filled pixels: planes on which a linear fill cannot be told, colors that give every pixel away."""

import numpy as np
import pytest
import torch

import worlds
from roadworthy.audit.geometry import blurriness
from roadworthy.audit.mask_detection import _auc, _trivial, fills_constantly, recover, rows_apart, train_predictor
from roadworthy.core.errors import InputError
from roadworthy.core.masks import MASKS, random_removal
from roadworthy.core.random import Key
from roadworthy.core.types import Batch
from roadworthy.imputers import Blur, Constant, DatasetMean, ImageMean, NoisyLinear


def planes(n, start=0, size=16):
    """Tilted planes, 0.1 to 0.7, with noise of 0.01: a linear fill continues them, its own noise is the same."""
    ids = torch.arange(start, start + n)
    down, right = torch.meshgrid(torch.linspace(-1, 1, size), torch.linspace(-1, 1, size), indexing="ij")
    tilt = Key(3).fold("tilt").uniform(ids, (3, 1, 1)) - 0.5
    plane = 0.4 + 0.2 * (tilt[:, :1] + tilt[:, 1:2] * down + tilt[:, 2:] * right)
    images = plane + 0.01 * Key(3).fold("noise").normal(ids, (1, size, size))
    return Batch(ids, images.clamp(0, 1), torch.zeros(n, dtype=torch.int64))


@pytest.fixture(scope="module")
def told():
    """error, AUC and guess per imputer and pattern, half of the pixels removed"""
    found = {}
    for name, imputer in (("fixed", Constant(0.9)), ("linear", NoisyLinear())):
        network = train_predictor(imputer, planes(128), Key(0))
        test = planes(64, start=1000)
        for pattern in MASKS:
            found[name, pattern] = recover(network, imputer, test, random_removal(test, pattern, 0.5, Key(1)), Key(0))
    return found


@pytest.mark.parametrize("pattern", MASKS)
def test_a_fixed_color_is_told_and_a_fill_like_the_image_is_not(told, pattern):
    fixed, linear = told["fixed", pattern], told["linear", pattern]
    assert fixed.error.mean() < 0.03
    assert fixed.auc.mean() > 0.97
    # Who cannot tell is wrong in half of the pixels, and the AUC is ½; scattered linear fills are a little less noisy.
    assert linear.error.mean() > 0.35
    assert linear.auc.mean() < 0.7


def test_the_trivial_inverse_of_a_constant_fill_is_wrong_only_where_the_image_has_that_color():
    images = torch.zeros(1, 1, 10, 10)
    images[:, :, :, 5:] = 0.7  # half of the image has the fill's color
    batch = Batch(torch.tensor([0]), images, torch.tensor([0]))
    removed = torch.zeros(1, 10, 10, dtype=torch.bool)
    removed[:, :3, :] = True  # 30 pixels
    found = recover(torch.nn.Conv2d(1, 1, 1), Constant(0.0), batch, removed, Key(0))
    assert found.inverse[0] == 7 * 5 / 100  # 7 kept rows, 5 black pixels in each
    assert recover(torch.nn.Conv2d(1, 1, 1), Constant(0.3), batch, removed, Key(0)).inverse[0] == 0


def test_only_fills_of_one_color_per_image_have_a_trivial_inverse():
    batch = planes(6)
    assert all(fills_constantly(one, batch, Key(0)) for one in (Constant(0.3), DatasetMean((0.4,)), ImageMean()))
    assert not any(fills_constantly(one, batch, Key(0)) for one in (NoisyLinear(), NoisyLinear(noise=0), Blur()))
    found = recover(torch.nn.Conv2d(1, 1, 1), NoisyLinear(), batch, random_removal(batch, "blobs", 0.5, Key(0)), Key(0))
    assert np.isnan(found.inverse).all()


def test_every_channel_must_have_the_color():
    filled = torch.tensor([[[[0.1, 0.1, 0.9]], [[0.2, 0.3, 0.2]]]])  # 1 image, 2 channels, 1×3 pixels
    removed = torch.tensor([[[True, False, False]]])
    assert _trivial(filled, removed).tolist() == [[[True, False, False]]]


def test_the_auc_counts_pairs_of_a_filled_and_a_kept_pixel():
    rng = np.random.default_rng(0)
    logits, removed = rng.integers(0, 5, (7, 20)).astype(float), rng.random((7, 20)) < 0.4
    for row, auc in enumerate(_auc(logits, removed)):
        pairs = [(a > b) + (a == b) / 2 for a in logits[row][removed[row]] for b in logits[row][~removed[row]]]
        assert auc == pytest.approx(np.mean(pairs))


def test_images_that_are_learned_from_are_not_tested_and_large_images_are_fewer():
    learned, tested = rows_apart(5000, (32, 32), Key(0))
    assert not set(learned) & set(tested)
    assert (len(learned), len(tested)) == (1024, 256)
    assert [len(rows) for rows in rows_apart(5000, (1000, 1000), Key(0))] == [32, 32]
    assert [len(rows) for rows in rows_apart(9, (32, 32), Key(0))] == [5, 4]
    with pytest.raises(InputError, match="learn from one image and test another"):
        rows_apart(1, (32, 32), Key(0))


def test_the_same_key_trains_the_same_predictor():
    first, second = (train_predictor(Constant(0.5), planes(8), Key(0)).state_dict() for _ in range(2))
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_what_is_said_of_an_image_does_not_depend_on_the_others():
    test, imputer = planes(6, start=1000), Constant(0.5)
    network = train_predictor(imputer, planes(8), Key(0))
    removed = random_removal(test, "scatter", 0.5, Key(1))
    together = recover(network, imputer, test, removed, Key(0))
    alone = [recover(network, imputer, test[[row]], removed[[row]], Key(0)).auc.item() for row in range(6)]
    # Convolutions of other batch sizes may round a logit otherwise, and so exchange two of 256 pixels.
    assert together.auc == pytest.approx(alone, abs=1e-3)


def test_an_image_gets_a_new_mask_whenever_it_comes_of_any_share_and_of_both_kinds():
    seen = []

    def noticed(batch, removed, key):
        seen.extend(removed[batch.ids == 0])
        return Constant(0.5)(batch, removed, key)

    train_predictor(noticed, planes(3), Key(0))
    masks = torch.stack(seen).float()
    assert len(masks) == 8 * 8  # epochs, and rounds of an epoch
    assert len(masks.unique(dim=0)) == len(masks)
    shares = masks.mean(dim=(1, 2))
    # Uniform below .95: that none of 64 lies above .8 has a chance of (.8/.95)^64, 2 in 100,000; below .15 likewise.
    assert shares.min() < 0.15 < 0.8 < shares.max() < 0.96
    some = blurriness(masks[(shares > 0.3) & (shares < 0.7)])
    # Scatter has no correlation of neighbors, one over sqrt(480 pairs) = .046 of it by chance; blobs are smooth.
    assert (np.abs(some) < 0.2).sum() > 3
    assert (some > 0.5).sum() > 3


def test_a_world_whose_holes_are_hidden_by_the_linear_fill_shows_them_in_a_fixed_color():
    """The sides world, its block removed: what is left of it in a fixed color is the whole mask."""
    world = worlds.sides(n=120)
    batch = Batch(torch.arange(120), world.images, world.labels)
    for imputer, low, high in ((DatasetMean((float(world.images.mean()),)), 0.0, 0.02), (NoisyLinear(), 0.15, 1.0)):
        network = train_predictor(imputer, batch[:60], Key(0))
        removed = world.truth[60:] == 1  # 30 of 144 pixels: who cannot tell is wrong in 21 %
        assert low <= recover(network, imputer, batch[60:], removed, Key(0)).error.mean() <= high
