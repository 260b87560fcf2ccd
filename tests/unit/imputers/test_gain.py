"""GAIN: the losses of the paper, networks for any image size, and weights files."""

import json

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

import gains
from references import literal_gain_losses
from roadworthy.core.errors import RangeError, ShapeError, WeightsError
from roadworthy.core.random import Key
from roadworthy.core.types import Batch
from roadworthy.imputers import Gain
from roadworthy.imputers.gain_networks import plain
from roadworthy.training.gain import Adversaries, GainRecipe, losses, packed

SHAPE = (3, 6, 5)


def batch_of(n, shape=SHAPE):
    ids = torch.arange(n) + 30
    return Batch(ids, Key(1).uniform(ids, shape), torch.zeros(n, dtype=torch.int64))


def adversaries(shape=SHAPE, recipe=gains.TINY):
    with Key(2).torch_rng():
        return Adversaries(torch.full(shape, 0.5), recipe)


# ── losses ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_losses_equal_the_definitions_pixel_by_pixel():
    numbers = np.random.default_rng(0)
    generated, image = numbers.uniform(size=(2, 3, 4, 5))
    detecting, fooling = numbers.normal(size=(2, 4, 5))
    removed = numbers.uniform(size=(4, 5)) < 0.4
    outputs = torch.tensor(np.concatenate([generated, detecting[None], fooling[None]])[None])
    targets = torch.tensor(np.concatenate([image, removed[None]])[None])
    expected = literal_gain_losses(generated, detecting, fooling, image, removed)
    assert [float(loss) for loss in losses(outputs, targets)] == pytest.approx(expected, rel=1e-12)
    discriminator, adversarial, reconstruction, _ = expected
    assert float(losses(outputs, targets).total(10)) == pytest.approx(
        discriminator + adversarial + 10 * reconstruction, rel=1e-12
    )


def test_each_network_is_trained_by_its_own_loss_only():
    networks = adversaries()
    inputs, targets = packed(batch_of(4), gains.TINY, Key(3))

    def gradients(choose):
        networks.zero_grad()
        networks.eval()  # no power iteration in between
        choose(losses(networks(inputs), targets)).backward()
        return [
            [torch.zeros(1) if weight.grad is None else weight.grad.clone() for weight in network.parameters()]
            for network in (networks.generator, networks.discriminator)
        ]

    generator, discriminator = gradients(lambda values: values.total(10))
    untouched, alone = gradients(lambda values: values.discriminator)
    assert all(torch.equal(a, b) for a, b in zip(discriminator, alone, strict=True))
    assert not any(gradient.any() for gradient in untouched)
    alone, untouched = gradients(lambda values: values.adversarial + 10 * values.reconstruction)
    assert all(torch.allclose(a, b, atol=1e-8) for a, b in zip(generator, alone, strict=True))
    assert any(gradient.any() for gradient in alone)
    assert not any(gradient.any() for gradient in untouched)


def test_hints_reveal_the_mask_at_the_given_fraction_of_pixels():
    batch = batch_of(64)
    inputs, targets = packed(batch, GainRecipe(hint=0.3), Key(3))
    hint, removed = inputs[:, -1], targets[:, -1]
    hinted = hint != 0.5
    # 64 · 30 = 1920 pixels: the fraction has deviation √(.3 · .7 / 1920) = .0105.
    assert float(hinted.float().mean()) == pytest.approx(0.3, abs=0.04)
    assert torch.equal(hint[hinted], removed[hinted])
    assert (packed(batch, GainRecipe(hint=0.0), Key(3))[0][:, -1] == 0.5).all()
    alone = packed(batch[5:6], GainRecipe(hint=0.3), Key(3))
    assert torch.equal(alone[0][0], inputs[5])
    assert not torch.equal(packed(batch, GainRecipe(hint=0.3), Key(4))[1], targets)  # fresh masks under another key


# ── networks ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_networks_of_the_paper_have_about_1_35_million_weights_each():
    networks = Adversaries(torch.zeros(3, 32, 32), GainRecipe())
    # By hand, 64 wide, 4 blocks: 4·49·64 + 64·9·128 + 8·(128·9·128) + 128·9·64 + 64·49·3 weights and 64 + 128 + 8·128 +
    # 64 + 3 biases.
    weights = 4 * 49 * 64 + 64 * 9 * 128 + 8 * 128 * 9 * 128 + 128 * 9 * 64 + 64 * 49 * 3 + 64 + 128 + 8 * 128 + 64 + 3
    assert sum(weight.numel() for weight in networks.generator.parameters()) == weights
    assert 1.3e6 < weights < 1.4e6
    assert 1.3e6 < sum(weight.numel() for weight in networks.discriminator.parameters()) < 1.4e6


def test_every_convolution_has_spectral_norm_1_and_plain_weights_are_equivalent():
    networks = adversaries().eval()
    bare = plain(networks.generator)
    convolutions = [module for module in bare.modules() if isinstance(module, torch.nn.Conv2d)]
    assert len(convolutions) == 6  # first, down, two of the block, up, last
    for convolution in convolutions:
        largest = torch.linalg.svdvals(convolution.weight.detach().flatten(1))[0]
        assert float(largest) == pytest.approx(1, abs=0.05)  # 15 power iterations
    batch = batch_of(3)
    removed = torch.rand(3, 1, *SHAPE[1:]) < 0.5
    field = torch.randn_like(batch.images)
    assert torch.equal(bare(batch.images, removed, field), networks.generator(batch.images, removed, field))


@pytest.mark.parametrize("shape", [(1, 32, 32), (3, 64, 64), (3, 224, 224), (1, 7, 1)], ids=str)
def test_images_of_any_size_are_imputed(shape):
    batch = batch_of(1, shape)
    removed = torch.zeros(1, *shape[1:], dtype=torch.bool)
    removed[:, 1:4] = True
    filled = gains.untrained(shape)(batch, removed, Key(0))
    assert filled.shape == batch.images.shape
    assert not torch.equal(filled[:, :, 1:4], batch.images[:, :, 1:4])


def test_imputed_images_depend_on_the_key_but_not_on_the_batch():
    gain, batch = gains.untrained((3, 32, 32), width=16, blocks=2), batch_of(70, (3, 32, 32))
    removed = torch.rand(70, 32, 32) < 0.5
    whole = gain(batch, removed, Key(0))
    assert not torch.equal(gain(batch, removed, Key(1)), whole)
    for rows in (slice(0, 1), slice(3, 10), slice(1, 66)):
        assert torch.equal(gain(batch[rows], removed[rows], Key(0)), whole[rows])


# ── weights ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_saved_gain_imputes_as_before_and_its_file_contains_the_recipe():
    path, batch = gains.file(SHAPE), batch_of(4)
    removed = torch.rand(4, *SHAPE[1:]) < 0.5
    state = torch.get_rng_state()
    Gain.load(path)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(Gain.load(path)(batch, removed, Key(0)), gains.untrained(SHAPE)(batch, removed, Key(0)))
    with safe_open(path, framework="pt") as opened:
        header = json.loads(opened.metadata()["gain"])
    assert header["recipe"]["alpha"] == 100
    assert header["recipe"]["width"] == 4
    assert header["curve"] == ["epoch", "discriminator", "adversarial", "reconstruction", "imputation"]


@pytest.mark.parametrize("shape", [(1, 6, 5), (3, 6, 6)], ids=["channels", "size"])
def test_images_of_another_shape_are_an_error(shape):
    gain = Gain.load(gains.file(SHAPE))
    with pytest.raises(ShapeError, match=rf"trained on .*\(3, 6, 5\), these are \({shape[0]}, 6, {shape[2]}\): train"):
        gain(batch_of(2, shape), torch.ones(2, *shape[1:], dtype=torch.bool), Key(0))


def test_invalid_weights_files_are_errors_that_name_the_file(tmp_path):
    with pytest.raises(WeightsError, match=r"no GAIN at .*nowhere.safetensors: train one"):
        Gain.load(tmp_path / "nowhere.safetensors")
    (tmp_path / "damaged.safetensors").write_bytes(b"nothing")
    with pytest.raises(WeightsError, match=r"damaged.safetensors cannot be read"):
        Gain.load(tmp_path / "damaged.safetensors")
    save_file({"weight": torch.zeros(3)}, tmp_path / "foreign.safetensors")
    with pytest.raises(WeightsError, match=r"foreign.safetensors: not the weights of a GAIN"):
        Gain.load(tmp_path / "foreign.safetensors")
    tensors = load_file(gains.file(SHAPE))
    tensors["generator.network.up.bias"][0] = torch.nan
    save_file(tensors, tmp_path / "nan.safetensors")
    with pytest.raises(WeightsError, match=r"nan.safetensors: .*infinite or NaN: train the GAIN again"):
        Gain.load(tmp_path / "nan.safetensors")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 0}, "alpha=0: .*above 0"),
        ({"alpha": float("inf")}, "alpha=inf"),
        ({"alpha": float("nan")}, "alpha=nan"),
        ({"hint": 1.0}, r"hint=1.0: .*\[0, 1\)"),
        ({"hint": -0.1}, "hint=-0.1"),
        ({"largest": 1.5}, "largest=1.5"),
        ({"noise": -1}, "noise=-1"),
        ({"width": 0}, "width=0"),
        ({"blocks": 1.5}, "blocks=1.5"),
        ({"epochs": 0}, "epochs=0"),
    ],
)
def test_settings_out_of_range_are_errors(options, message):
    with pytest.raises(RangeError, match=message):
        GainRecipe(**options)
