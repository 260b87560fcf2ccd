"""The contract of every registered attribution."""

from functools import cache

import pytest
import torch

import vits
import worlds
from libraries import library
from roadworthy.core.random import Key
from roadworthy.core.types import Batch
from roadworthy.evaluation.sweep import explain
from roadworthy.evaluation.units import Patches, UnitSetting
from roadworthy.experiments.registry import REGISTRY
from roadworthy.models import small_cnn
from roadworthy.models.normalized import Normalized

KEY = Key(0).fold("maps")


ON_TOKENS = {"attention-rollout", "gradient-attention", "raw-attention", "token-grad-cam"}
"""Methods that need a vision transformer, and explain its patches."""


@cache
def network(tokens):
    with Key(3).torch_rng():
        return vits.vit() if tokens else small_cnn(classes=4, channels=3, width=4)


@pytest.fixture
def model(name):
    return Normalized(network(name in ON_TOKENS), mean=(0.5, 0.4, 0.3), std=(0.2, 0.2, 0.3)).eval()


@pytest.fixture
def batch(name):
    world = worlds.quadrants(n=7, size=16)
    batch = Batch(torch.arange(20, 27), world.images, world.labels)
    return UnitSetting(Patches(4))(batch) if name in ON_TOKENS else batch


@pytest.fixture(params=[name for name in REGISTRY["attributions"] if name != "maps"])  # maps are a file, not a method
def name(request):
    return request.param


@pytest.fixture
def method(name):
    small = {"steps": 3, "ig_samples": 2, "gb_samples": 2}
    options = {
        "captum": {"method": "Saliency"},
        "grad-cam": {"method": "GradCAM", "layer": "features"},
        "zennit": {"composite": "EpsilonPlusFlat"},
    }
    if name in ("grad-cam", "zennit"):
        library({"grad-cam": "pytorch_grad_cam", "zennit": "zennit.composites"}[name])
    entry = REGISTRY["attributions"][name]
    return entry.make(**options.get(name, small if "-s" in name or "-v" in name else {}))


def test_one_finite_value_per_pixel(method, model, batch):
    maps = explain({"method": method}, model, batch, KEY)["method"]
    assert maps.shape == (7, 16, 16)
    assert maps.dtype == torch.float32
    assert torch.isfinite(maps).all()
    assert maps.flatten(1).std(dim=1).min() > 0


def test_maps_are_reproducible_and_depend_on_the_batch_only_by_rounding(method, model, batch):
    whole = explain({"method": method}, model, batch, KEY)["method"]
    assert torch.equal(explain({"method": method}, model, batch, KEY)["method"], whole)
    alone = explain({"method": method}, model, batch[3:4], KEY)["method"]
    # Convolutions may sum in another order for another batch size: float32 rounding, 1e-4 of the map's scale.
    assert (alone[0] - whole[3]).abs().max() <= 1e-4 * whole[3].abs().max()


def test_model_and_images_are_left_unchanged(method, model, batch):
    images = batch.images.clone()
    explain({"method": method}, model, batch, KEY)
    assert torch.equal(batch.images, images)
    assert batch.images.grad is None
    assert all(parameter.grad is None for parameter in model.parameters())
    assert not any(module._forward_hooks or module._backward_hooks for module in model.modules())
