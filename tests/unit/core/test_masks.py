"""Random masks: exact counts, randomness keyed by image, scattered pixels and blobs."""

from fractions import Fraction
from math import floor

import pytest
import torch

from roadworthy.core.masks import MASKS, blobs, count, of_either_kind, random_removal, removed_at, scattered
from roadworthy.core.random import Key
from roadworthy.core.types import Batch

IDS = torch.arange(50, 70)


@pytest.mark.parametrize("kind", MASKS)
@pytest.mark.parametrize("shape", [(16, 16), (5, 9), (1, 7), (1, 1)], ids=str)
def test_ranks_are_a_permutation_that_depends_only_on_key_and_id(kind, shape):
    ranks = MASKS[kind](IDS, shape, Key(1))
    assert torch.equal(ranks.flatten(1).sort(dim=1).values, torch.arange(shape[0] * shape[1]).expand(20, -1))
    assert torch.equal(MASKS[kind](IDS[7:8], shape, Key(1))[0], ranks[7])
    if ranks[0].numel() > 1:
        assert not torch.equal(MASKS[kind](IDS, shape, Key(2)), ranks)


def borders(removed):
    """The number of adjacent pairs of which exactly one pixel is removed."""
    return int((removed[:, 1:] != removed[:, :-1]).sum() + (removed[:, :, 1:] != removed[:, :, :-1]).sum())


def test_blobs_are_contiguous_and_scattered_pixels_are_not():
    shape = (32, 32)
    scatter, blob = (removed_at(kind(IDS, shape, Key(0)), 0.5) for kind in (scattered, blobs))
    # Of 2 · 31 · 32 pairs per image, scatter splits a fraction 2 · ½ · ½; 20 images.
    assert borders(scatter) == pytest.approx(20 * 2 * 31 * 32 / 2, rel=0.03)
    assert borders(blob) < borders(scatter) / 3


def test_masks_of_either_kind_remove_a_random_fraction():
    ids, shape = torch.arange(400), (16, 16)
    removed = of_either_kind(ids, shape, 0.8, Key(0))
    fractions = removed.float().mean(dim=(1, 2))
    assert fractions.max() <= 205 / 256  # floor(.8 · 256 + ½) pixels
    # Uniform in (0, .8): mean .4; the mean of 400 has standard deviation .8/√12/20 = .012.
    assert float(fractions.mean()) == pytest.approx(0.4, abs=0.05)
    half = [removed[row : row + 1] for row in range(400) if 0.3 < fractions[row] < 0.7]
    split_pairs = torch.tensor([borders(mask) for mask in half])
    # At these fractions scatter splits at least 2 · .3 · .7 · 480 = 201 pairs on average, blobs a few dozen.
    assert 0.35 < float((split_pairs > 150).float().mean()) < 0.65
    assert torch.equal(of_either_kind(ids[3:9], shape, 0.8, Key(0)), removed[3:9])


@pytest.mark.parametrize("kind", MASKS)
def test_random_removal_removes_exactly_the_given_fraction(kind):
    batch = Batch(IDS, torch.zeros(20, 1, 16, 16), torch.zeros(20).long())
    assert random_removal(batch, kind, 0.3, Key(0)).flatten(1).sum(dim=1).tolist() == [77] * 20  # floor(.3 · 256 + ½)


@pytest.mark.parametrize(("fraction", "pixels"), [(0.29, 50), (0.145, 100), (1 - 0.71, 50), (0.7 - 0.41, 50)], ids=str)
def test_half_a_pixel_is_rounded_up_although_floats_fall_short_of_it(fraction, pixels):
    # .29 · 50 = .145 · 100 = 14.5 pixels; in floats the products are 14.499999999999998.
    assert count(fraction, pixels) == 15


def test_counts_follow_the_exact_rule_for_all_fractions_of_three_decimals():
    wrong = [
        (thousandths, pixels)
        for pixels in (*range(1, 60), *range(60, 2001, 7), 784, 1000, 1024, 2000, 4096, 50176, 250_000, 1_000_000)
        for thousandths in range(1001)
        # floor(k/1000·n + ½) = floor((2·k·n + 1000)/2000), in integers
        if count(thousandths / 1000, pixels) != (2 * thousandths * pixels + 1000) // 2000
    ]
    assert wrong == []


def test_counts_of_random_fractions_are_exact_too():
    # What at_random_shares draws: float32 numbers times the largest fraction, whose exact value is that of the float.
    for largest in (0.9, 0.8, 1.0):
        for fraction in (Key(0).uniform(range(500), (1,))[:, 0] * largest).tolist():
            for pixels in (784, 1024, 4096):
                assert count(fraction, pixels) == floor(Fraction(fraction) * pixels + Fraction(1, 2))
