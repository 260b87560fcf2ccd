"""Noisy Linear against the paper's equations, and the simple imputers against their definitions."""

import numpy as np
import pytest
import torch

import references
import roadworthy as rw
import worlds
from roadworthy.core.random import Key
from roadworthy.imputers.solvers import direct

NOISELESS = rw.NoisyLinear(noise=0)


@pytest.mark.parametrize("shape", [(1, 3, 3), (3, 6, 5), (2, 5, 9), (3, 1, 8), (1, 8, 1), (3, 2, 7)])
@pytest.mark.parametrize("fraction", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("weights", [(1 / 6, 1 / 12), (0.25, 0.0), (0.01, 1.0)])
def test_the_result_solves_the_equations_of_the_paper(shape, fraction, weights):
    images = Key(0).uniform(range(3), shape)
    removed = worlds.masks(3, *shape[1:], fraction)
    filled = rw.impute(rw.NoisyLinear(noise=0, weights=weights), images, removed).numpy()
    for image, mask, result in zip(images.numpy(), removed.numpy(), filled, strict=True):
        # Every solver promises to be within 1e-4 of the exact solution.
        assert np.abs(result - references.dense_fill(image, mask, weights)).max() < 1e-4


def test_the_direct_solver_is_exact_to_float32_rounding():
    images, removed = Key(0).uniform(range(2), (3, 9, 7)), worlds.masks(2, 9, 7, 0.7)
    for image, mask, result in zip(images, removed, direct.solve(images, removed, (1 / 6, 1 / 12)), strict=True):
        assert np.abs(result.numpy() - references.dense_fill(image.numpy(), mask.numpy())).max() < 2e-7


def test_sparse_and_banded_direct_solutions_agree(monkeypatch):
    images, removed = Key(0).uniform(range(2), (3, 20, 30)), worlds.masks(2, 20, 30, 0.6)
    banded = direct.solve(images, removed, (1 / 6, 1 / 12))
    monkeypatch.setattr(direct, "_BAND_ENTRIES", 0)
    assert torch.allclose(direct.solve(images, removed, (1 / 6, 1 / 12)), banded, atol=1e-6)


def test_weights_are_renormalized_in_the_corner():
    # Paper: 5/12·x00 = 1/6·x10 + 1/6·x01 + 1/12·x11. With neighbors 1, 0, 0.5: (1/6 + 0.5/12) / (5/12) = 0.5.
    image = torch.tensor([[[[0.3, 0.0], [1.0, 0.5]]]])
    removed = torch.tensor([[[True, False], [False, False]]])
    assert rw.impute(NOISELESS, image, removed)[0, 0, 0, 0].item() == pytest.approx(0.5, abs=1e-4)


def test_a_plane_is_restored_from_its_border():
    image = worlds.ramp(9, 12)
    removed = torch.zeros(1, 9, 12, dtype=torch.bool)
    removed[0, 1:-1, 1:-1] = True
    damaged = torch.where(removed[:, None], 0.0, image)
    assert torch.allclose(rw.impute(NOISELESS, damaged, removed), image, atol=1e-4)


def test_one_kept_pixel_determines_the_whole_image():
    removed = torch.ones(1, 16, 16, dtype=torch.bool)
    removed[0, 0, 0] = False
    image = torch.zeros(1, 3, 16, 16)
    image[0, :, 0, 0] = torch.tensor([0.2, 0.5, 0.9])
    assert torch.allclose(rw.impute(NOISELESS, image, removed), image[..., :1, :1].expand_as(image), atol=1e-4)


def test_removed_values_do_not_influence_the_result():
    images, removed = Key(0).uniform(range(2), (3, 8, 8)), worlds.masks(2, 8, 8, 0.5)
    other = torch.where(removed[:, None], 1 - images, images)
    assert torch.equal(rw.impute(rw.NoisyLinear(), images, removed), rw.impute(rw.NoisyLinear(), other, removed))


def test_noise_has_the_given_deviation_and_is_independent_per_channel():
    images, removed = torch.full((30, 3, 16, 16), 0.5), worlds.masks(30, 16, 16, 0.5)
    filled = rw.impute(rw.NoisyLinear(noise=0.01), images, removed)
    noise = (filled - 0.5)[removed[:, None].expand_as(filled)].reshape(30, 3, -1)
    # 11,520 draws: the standard error of the deviation is .7 %; bounds at 5 of them
    assert float(noise.std()) == pytest.approx(0.01, rel=0.035)
    channels = noise.transpose(0, 1).reshape(3, -1).numpy()
    assert np.abs(np.corrcoef(channels) - np.eye(3)).max() < 0.1


def test_all_masks_of_an_image_share_one_noise_field():
    images = torch.full((1, 1, 8, 8), 0.5)
    few, many = (worlds.masks(1, 8, 8, fraction) for fraction in (0.3, 0.8))
    both = (few & many)[:, None]
    first, second = (rw.impute(rw.NoisyLinear(), images, mask) - images for mask in (few, many))
    assert both.any()
    # The same draw on the same constant image, up to the solver's rounding of 0.5.
    assert torch.allclose(first[both], second[both], atol=1e-4)
    assert first[both].abs().max() > 1e-3


def test_everything_removed_is_an_error_that_names_the_image():
    images, removed = torch.rand(3, 1, 4, 4), torch.zeros(3, 4, 4, dtype=torch.bool)
    removed[1] = True
    with pytest.raises(rw.errors.EverythingRemovedError, match="image 71"):
        rw.impute(rw.NoisyLinear(), images, removed, ids=[70, 71, 72])


@pytest.mark.parametrize("wrong", [{"noise": -1}, {"weights": (0, 1)}, {"weights": (1, -0.1)}])
def test_invalid_settings_are_errors(wrong):
    with pytest.raises(rw.errors.RangeError, match=next(iter(wrong))):
        rw.NoisyLinear(**wrong)


def test_fixed_imputers_use_the_means_of_dataset_and_image():
    images = Key(2).uniform(range(4), (3, 6, 6))
    removed = worlds.masks(4, 6, 6, 0.5)
    mask = removed[:, None].expand_as(images)
    dataset_mean = rw.DatasetMean.of(rw.datasets.Arrays(images))
    expected = images.double().mean(dim=(0, 2, 3))
    assert np.allclose(dataset_mean.mean, expected, atol=1e-9)
    filled = rw.impute(dataset_mean, images, removed)
    assert torch.allclose(filled[mask], expected.float().reshape(1, 3, 1, 1).expand_as(images)[mask])
    filled = rw.impute(rw.ImageMean(), images, removed)
    assert torch.allclose(filled[mask], images.mean(dim=(2, 3), keepdim=True).expand_as(images)[mask])
    assert (rw.impute(rw.Constant(0.25), images, removed)[mask] == 0.25).all()
    assert (rw.impute(rw.Constant((0.1, 0.2, 0.3)), images, removed)[:, 2][removed] == torch.tensor(0.3)).all()


def test_a_wrong_number_of_fill_values_is_an_error():
    with pytest.raises(rw.errors.ShapeError, match="2 fill values for images with 3 channels"):
        rw.impute(rw.Constant((0.1, 0.2)), torch.rand(1, 3, 4, 4), torch.ones(1, 4, 4, dtype=torch.bool))


def test_impute_rejects_masks_that_are_not_bool_or_not_per_pixel():
    with pytest.raises(rw.errors.ShapeError, match="True = removed"):
        rw.impute(NOISELESS, torch.rand(1, 3, 4, 4), torch.ones(1, 4, 4))
    with pytest.raises(rw.errors.ShapeError, match=r"\(1, 4, 4\)"):
        rw.impute(NOISELESS, torch.rand(1, 3, 4, 4), torch.ones(1, 3, 4, 4, dtype=torch.bool))
