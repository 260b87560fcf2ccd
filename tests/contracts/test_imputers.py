"""The contract of every registered imputer; a new one is tested automatically."""

import pytest
import torch

import gains
import worlds
from roadworthy.core.errors import EverythingRemovedError
from roadworthy.core.random import Key
from roadworthy.core.types import Batch
from roadworthy.datasets import Arrays
from roadworthy.experiments.registry import REGISTRY
from roadworthy.imputers import NoisyLinear

KEY = Key(5)


@pytest.fixture(params=REGISTRY["imputers"])
def part(request):
    return REGISTRY["imputers"][request.param]


def build(part, images):
    if part is REGISTRY["imputers"]["gain"]:
        return part.make(gains.file(tuple(images.shape[1:])))
    return part.make(Arrays(images)) if part.needs_data else part.make()


def batch_of(images):
    ids = torch.arange(100, 100 + len(images))
    return Batch(ids, images, torch.zeros(len(images), dtype=torch.int64))


def images_of(n, channels, height, width):
    return Key(4).uniform(range(n), (channels, height, width))


@pytest.fixture(params=[(3, 8, 8), (1, 5, 7), (4, 1, 6), (2, 2, 2), (3, 9, 1)], ids=str)
def sized(request):
    images = images_of(5, *request.param)
    return batch_of(images), worlds.masks(5, *request.param[1:], fraction=0.5)


def test_kept_pixels_stay_bit_equal_and_removed_ones_become_finite(part, sized):
    batch, removed = sized
    filled = build(part, batch.images)(batch, removed, KEY)
    kept = ~removed[:, None].expand_as(filled)
    assert filled.dtype == torch.float32
    assert torch.equal(filled[kept], batch.images[kept])
    assert torch.isfinite(filled).all()
    assert not torch.equal(filled, batch.images)


def test_the_input_is_not_modified(part, sized):
    batch, removed = sized
    images, mask = batch.images.clone(), removed.clone()
    filled = build(part, images)(batch, removed, KEY)
    filled += 1
    assert torch.equal(batch.images, images)
    assert torch.equal(removed, mask)


def test_nothing_removed_returns_the_images(part, sized):
    batch, removed = sized
    assert torch.equal(build(part, batch.images)(batch, torch.zeros_like(removed), KEY), batch.images)


def test_everything_removed_is_an_error_or_gives_finite_values(part, sized):
    batch, removed = sized
    imputer = build(part, batch.images)
    everything = torch.ones_like(removed)
    if isinstance(imputer, NoisyLinear):  # it imputes from kept pixels, and there are none
        with pytest.raises(EverythingRemovedError, match="100"):  # the first image's id
            imputer(batch, everything, KEY)
    else:
        assert torch.isfinite(imputer(batch, everything, KEY)).all()


def test_the_same_key_gives_the_same_bytes(part, sized):
    batch, removed = sized
    imputer = build(part, batch.images)
    assert torch.equal(imputer(batch, removed, KEY), imputer(batch, removed, KEY))


def test_batch_size_and_order_do_not_matter(part):
    images = images_of(7, 3, 8, 6)
    batch, removed = batch_of(images), worlds.masks(7, 8, 6, fraction=0.6)
    imputer = build(part, images)
    whole = imputer(batch, removed, KEY)
    for row in reversed(range(7)):
        rows = slice(row, row + 1)
        assert torch.equal(imputer(batch[rows], removed[rows], KEY)[0], whole[row])
    backwards = torch.arange(6, -1, -1)
    assert torch.equal(imputer(batch[backwards], removed[backwards], KEY), whole[backwards])


def test_non_contiguous_images_give_the_same_result(part):
    images = images_of(3, 3, 8, 6)
    removed = worlds.masks(3, 8, 6, fraction=0.4)
    imputer = build(part, images)
    strided = images.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)
    assert not strided.is_contiguous()
    assert torch.equal(imputer(batch_of(strided), removed, KEY), imputer(batch_of(images), removed, KEY))


def test_several_masks_of_the_same_images_can_be_imputed_together(part):
    batch = batch_of(images_of(4, 3, 8, 8))
    masks = [worlds.masks(4, 8, 8, fraction) for fraction in (0.3, 0.6, 0.9)]
    imputer = build(part, batch.images)
    together = imputer(batch[torch.arange(4).repeat(3)], torch.cat(masks), KEY)
    for mask, filled in zip(masks, together.split(4), strict=True):
        assert torch.equal(filled, imputer(batch, mask, KEY))
