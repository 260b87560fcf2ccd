"""14 defects of existing implementations; each test fails on an implementation that has the defect."""

import subprocess
import sys

import numpy as np
import pytest
import torch

import references
import roadworthy as rw
import worlds
from roadworthy.core.random import Key


@pytest.fixture(scope="module")
def world():
    return worlds.quadrants(n=20)


def compared(world, **options):
    settings = {"fractions": (0.5,), "controls": ()} | options
    return rw.compare(world.model, (world.images, world.labels), {"truth": world.truth}, **settings)


def test_1_rgb_images_are_evaluated(world):
    assert world.images.shape[1] == 3
    assert compared(world).ranking()["method"].tolist() == ["truth"]


def test_2_every_batch_is_scored(world):
    assert len(compared(world, batch_size=6).per_image()) == 20 * 2 * 2  # images, orders, fractions 0 and .5


def test_3_a_map_with_many_zeros_loses_exactly_the_given_fraction():
    cam = Key(0).normal(range(5), (14, 14)).sub(0.6).clamp(min=0)
    assert (cam == 0).float().mean() > 0.6
    for fraction in (0.5, 0.7, 0.9):
        shares = rw.removal_mask(cam, fraction).float().mean(dim=(1, 2))
        assert torch.allclose(shares, torch.full((5,), round(fraction * 196) / 196))


def test_4_an_all_removed_image_is_an_error_not_zeros():
    with pytest.raises(rw.errors.EverythingRemovedError):
        rw.impute(rw.NoisyLinear(), torch.rand(1, 3, 5, 5), torch.ones(1, 5, 5, dtype=torch.bool))


def test_5_custom_weights_are_used():
    images, removed = Key(0).uniform([0], (3, 8, 8)), worlds.masks(1, 8, 8, 0.6)
    default, plus = (rw.impute(rw.NoisyLinear(noise=0, weights=w), images, removed) for w in ((1 / 6, 1 / 12), (1, 0)))
    expected = references.dense_fill(images[0].numpy(), removed[0].numpy(), (1, 0))
    assert np.abs(plus[0].numpy() - expected).max() < 1e-4
    assert (plus - default).abs().max() > 0.01


def test_6_the_input_images_are_not_modified():
    images, removed = Key(0).uniform([0], (3, 8, 8)), worlds.masks(1, 8, 8, 0.6)
    before = images.clone()
    for imputer in (rw.NoisyLinear(), rw.Constant(0.0), rw.ImageMean(), rw.Blur()):
        rw.impute(imputer, images, removed)
    assert torch.equal(images, before)


def test_7_a_channels_first_map_without_batch_is_not_summed_over_the_wrong_axis(world):
    with pytest.raises(rw.errors.ShapeError):
        rw.removal_mask(torch.rand(3, 12, 12)[None], 0.5)
    with pytest.raises(rw.errors.ShapeError, match="3 maps for 1 images"):
        rw.compare(world.model, (world.images[:1], world.labels[:1]), {"chw": torch.rand(3, 12, 12)})


def test_8_the_probability_is_that_of_the_target(world):
    plain = compared(world).per_image().query("fraction == 0").drop_duplicates("id")
    expected = world.model(world.images).softmax(dim=1)[torch.arange(20), world.labels]
    assert np.allclose(plain["probability"], expected, atol=1e-6)
    assert not np.allclose(plain["probability"], world.model(world.images).softmax(dim=1)[:, 0], atol=1e-3)


def test_9_importing_leaves_the_global_generators_unchanged():
    code = (
        "import random, numpy as np, torch; random.seed(1); np.random.seed(1); torch.manual_seed(1);"
        "a = random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist();"
        "import roadworthy;"
        "assert a == (random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist())"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_10_noise_does_not_depend_on_how_the_work_is_split():
    images, removed = Key(0).uniform(range(6), (3, 8, 8)), worlds.masks(6, 8, 8, 0.6)
    whole = rw.impute(rw.NoisyLinear(), images, removed)
    halves = [
        rw.impute(rw.NoisyLinear(), images[r], removed[r], ids=r)
        for r in (torch.tensor([3, 4, 5]), torch.tensor([0, 1, 2]))
    ]
    assert torch.equal(torch.cat(halves[::-1]), whole)


def test_11_ties_are_broken_differently_in_every_image():
    removed = rw.removal_mask(torch.zeros(30, 10, 10), 0.5).float()
    # Broken by position, a pixel would be removed in all images or in none; at random, in .5 ± .09 of them.
    shares = removed.mean(dim=0)
    assert shares.min() > 0
    assert shares.max() < 1


def test_12_a_fraction_is_the_fraction_removed_in_both_orders(world):
    for order in ("morf", "lerf"):
        assert rw.removal_mask(world.truth, 0.25, order=order).float().mean() == 0.25


def test_13_train_mode_and_logits_objects_and_devices_work(world):
    network = torch.nn.Sequential(world.model, torch.nn.Dropout(0.9)).train()

    def answers_with_logits(images):
        return type("Answer", (), {"logits": network(images)})()

    for model in (network, answers_with_logits):
        rw.compare(model, (world.images, world.labels), {"t": world.truth}, fractions=(0.5,), device="cpu")
    assert network.training
    comparison = rw.compare(network, (world.images, world.labels), {"t": world.truth}, fractions=(0.5,), controls=())
    assert np.array_equal(comparison.per_image()["predicted"], compared(world).per_image()["predicted"])


def test_14_a_crash_leaves_the_old_report_intact(world, tmp_path, monkeypatch):
    page = tmp_path / "report.html"
    comparison = compared(world)
    comparison.report(page)
    before = page.read_bytes()

    def full_disk(_):
        raise OSError("No space left on device")

    monkeypatch.setattr("roadworthy.core.files.os.fsync", full_disk)
    with pytest.raises(OSError, match="No space left"):
        comparison.report(page)
    assert page.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
