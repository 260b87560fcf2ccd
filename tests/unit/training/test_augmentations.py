"""Augmentations: flips and shifts, random per image by key and id."""

import pytest
import torch

from roadworthy.core.random import Key
from roadworthy.experiments.registry import REGISTRY
from roadworthy.training.augmentations import SHIFT

IDS = torch.arange(200)
IMAGES = Key(0).uniform(IDS, (2, 6, 5)) + 0.5  # no pixel is 0, so padding can be recognized


@pytest.fixture(params=REGISTRY["augmentations"])
def augment(request):
    return REGISTRY["augmentations"][request.param].make()


def test_augmentation_depends_only_on_key_and_id(augment):
    whole, some = augment(IMAGES, IDS, Key(1)), torch.tensor([150, 3])
    assert torch.equal(augment(IMAGES[some], IDS[some], Key(1)), whole[some])
    assert torch.equal(augment(IMAGES, IDS, Key(1)), whole)
    assert not torch.equal(augment(IMAGES, IDS, Key(2)), whole)


def test_about_half_of_the_images_are_flipped():
    augmented = REGISTRY["augmentations"]["flip"].make()(IMAGES, IDS, Key(1))
    flipped = (augmented == IMAGES.flip(-1)).flatten(1).all(dim=1)
    same = (augmented == IMAGES).flatten(1).all(dim=1)
    assert (flipped ^ same).all()
    # 200 fair coins: 100 ± 7; four deviations on either side
    assert 72 <= int(flipped.sum()) <= 128


def test_a_shifted_image_is_padded_with_zeros():
    augmented = REGISTRY["augmentations"]["shift-flip"].make()(IMAGES, IDS, Key(1))
    observed = set()
    for before, after in zip(IMAGES, augmented, strict=True):
        moves = [
            (down, right, flip)
            for down in range(-SHIFT, SHIFT + 1)
            for right in range(-SHIFT, SHIFT + 1)
            for flip in (False, True)
            if torch.equal(_moved(before.flip(-1) if flip else before, down, right), after)
        ]
        assert moves
        observed |= set(moves)
    # All 9 shifts along either axis occur: the chance that one of 18 is missing is 18·(8/9)^200.
    assert {down for down, _, _ in observed} == {right for _, right, _ in observed} == set(range(-SHIFT, SHIFT + 1))


def _moved(image, down, right):
    """Pixel by pixel."""
    out = torch.zeros_like(image)
    for i in range(image.shape[1]):
        for j in range(image.shape[2]):
            if 0 <= i - down < image.shape[1] and 0 <= j - right < image.shape[2]:
                out[:, i, j] = image[:, i - down, j - right]
    return out
