"""Imputation error, where it can be derived by hand."""

import pytest
import torch

import worlds
from roadworthy.core.masks import random_removal
from roadworthy.core.random import Key
from roadworthy.datasets import Arrays
from roadworthy.evaluation.quality import imputation_mse, imputation_quality, picture_strip
from roadworthy.imputers import Constant, NoisyLinear


def test_the_mse_of_a_constant_on_gray_images_is_the_squared_difference():
    rows = list(
        imputation_quality({"black": Constant(0.0), "right": Constant(0.5)}, Arrays(torch.full((5, 3, 8, 8), 0.5)))
    )
    assert [(row.imputer, row.masks, row.fraction) for row in rows[:3]] == [
        ("black", "scatter", 0.1),
        ("right", "scatter", 0.1),
        ("black", "scatter", 0.3),
    ]
    assert len(rows) == 2 * 2 * 3  # imputers, kinds of masks, fractions
    assert {row.mse for row in rows if row.imputer == "black"} == {0.25}
    assert {row.mse for row in rows if row.imputer == "right"} == {0.0}
    assert all(row.images == 5 and row.seconds > 0 for row in rows)


def test_only_removed_pixels_count_and_batches_do_not():
    images = torch.zeros(2, 1, 2, 2)
    filled = images.clone()
    filled[0, 0, 0, 0] = 3  # removed: 9 over its two removed pixels
    filled[0, 0, 1, 1] = 7  # kept
    removed = torch.zeros(2, 2, 2, dtype=torch.bool)
    removed[0, 0] = True
    assert imputation_mse(filled, images, removed).tolist() == [4.5, 0]
    data = Arrays(worlds.quadrants(n=9).images)
    first, second = (list(imputation_quality({"linear": NoisyLinear()}, data, batch=size)) for size in (2, 9))
    assert [row.mse for row in first] == pytest.approx([row.mse for row in second], rel=1e-6)


def test_a_strip_shows_each_image_the_removed_pixels_and_each_imputation():
    data = Arrays(worlds.quadrants(n=4).images)
    [batch] = data.batches(4)
    strip = picture_strip({"white": Constant(1.5), "black": Constant(0.0)}, batch, "blobs", 0.3)
    assert strip.shape == (3, 4 * 12, 4 * 12)  # image, removed pixels in black, two imputations; four images
    second = (slice(None), slice(12, 24))  # the column of the second image
    removed = random_removal(batch, "blobs", 0.3, Key(0).fold("quality"))[1]
    image, masked, white, black = (strip[:, row * 12 : row * 12 + 12][second[0], :, second[1]] for row in range(4))
    assert torch.equal(image, batch.images[1])
    assert torch.equal(masked, black)
    assert (white[:, removed] == 1).all()  # 1.5 is shown as white
    assert torch.equal(white[:, ~removed], image[:, ~removed])
