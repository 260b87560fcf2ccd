"""Augmentations: what they may do to an image, and that each image's fate is its own."""

import pytest
import torch

from roadworthy.core.random import Key
from roadworthy.experiments.registry import REGISTRY
from roadworthy.training.augmentations import SHIFT

IDS = torch.arange(200)
IMAGES = Key(0).uniform(IDS, (2, 6, 5)) + 0.5  # no pixel is 0, so what comes in at the border is seen


@pytest.fixture(params=REGISTRY["augmentations"])
def augment(request):
    return REGISTRY["augmentations"][request.param].make()


def test_an_image_is_changed_by_key_and_id_alone(augment):
    whole, some = augment(IMAGES, IDS, Key(1)), torch.tensor([150, 3])
    assert torch.equal(augment(IMAGES[some], IDS[some], Key(1)), whole[some])
    assert torch.equal(augment(IMAGES, IDS, Key(1)), whole)
    assert not torch.equal(augment(IMAGES, IDS, Key(2)), whole)


def test_about_half_of_the_images_are_mirrored():
    seen = REGISTRY["augmentations"]["flip"].make()(IMAGES, IDS, Key(1))
    mirrored = (seen == IMAGES.flip(-1)).flatten(1).all(dim=1)
    same = (seen == IMAGES).flatten(1).all(dim=1)
    assert (mirrored ^ same).all()
    # 200 fair coins: 100 ± 7; four deviations on either side
    assert 72 <= int(mirrored.sum()) <= 128


def test_a_shifted_image_is_the_image_moved_with_zeros_coming_in():
    seen = REGISTRY["augmentations"]["shift-flip"].make()(IMAGES, IDS, Key(1))
    found = set()
    for before, after in zip(IMAGES, seen, strict=True):
        moves = [
            (down, right, flip)
            for down in range(-SHIFT, SHIFT + 1)
            for right in range(-SHIFT, SHIFT + 1)
            for flip in (False, True)
            if torch.equal(_moved(before.flip(-1) if flip else before, down, right), after)
        ]
        assert moves
        found |= set(moves)
    # Every one of the 9 moves along either axis has happened: the chance that one of 18 is missing is 18·(8/9)^200.
    assert {down for down, _, _ in found} == {right for _, right, _ in found} == set(range(-SHIFT, SHIFT + 1))


def _moved(image, down, right):
    """Literally, pixel by pixel."""
    out = torch.zeros_like(image)
    for i in range(image.shape[1]):
        for j in range(image.shape[2]):
            if 0 <= i - down < image.shape[1] and 0 <= j - right < image.shape[2]:
                out[:, i, j] = image[:, i - down, j - right]
    return out
