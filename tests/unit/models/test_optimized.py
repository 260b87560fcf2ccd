"""A faster copy of a model predicts and explains as the model does."""

import pytest
import torch
from torch import nn

import roadworthy as rw
from roadworthy.core.random import Key
from roadworthy.core.types import Batch
from roadworthy.evaluation.sweep import explain
from roadworthy.models.normalized import Normalized


@pytest.fixture(scope="module")
def model():
    with Key(1).torch_rng():
        network = rw.models.cifar_resnet(depth=8, width=4)
        for module in network.modules():
            if isinstance(module, nn.BatchNorm2d):
                nn.init.normal_(module.running_mean, 0, 0.2)
                nn.init.uniform_(module.running_var, 0.5, 2)
                nn.init.uniform_(module.weight, 0.5, 2)
    return Normalized(network, mean=(0.5, 0.4, 0.3), std=0.2).eval()


@pytest.fixture(scope="module")
def batch():
    return Batch(torch.arange(6), Key(2).uniform(range(6), (3, 32, 32)), torch.arange(6))


def kinds(model):
    return {type(module) for module in model.modules()}


@pytest.mark.parametrize(("fuse", "channels_last"), [(True, False), (False, True), (True, True)])
def test_logits_and_maps_are_the_same_up_to_rounding(model, batch, fuse, channels_last):
    faster = rw.models.optimized(model, fuse=fuse, channels_last=channels_last)
    with torch.no_grad():
        assert torch.allclose(faster(batch.images), model(batch.images), atol=1e-4)
    methods = {"gb": rw.attributions.GuidedBackprop(), "ig": rw.attributions.IntegratedGradients(steps=4)}
    ours, theirs = (explain(methods, each, batch, Key(0)) for each in (faster, model))
    for name in methods:
        # A ReLU that rounding switches changes single pixels: the maps agree almost everywhere.
        scale = theirs[name].abs().amax()
        assert ((ours[name] - theirs[name]).abs() > 1e-3 * scale).float().mean() < 0.01, name


def test_fused_models_have_no_batch_normalization_and_the_original_stays(model):
    assert nn.BatchNorm2d not in kinds(rw.models.optimized(model))
    assert nn.BatchNorm2d in kinds(rw.models.optimized(model, fuse=False))
    assert nn.BatchNorm2d in kinds(model)
    assert next(model.network.parameters()).is_contiguous()
    assert all(parameter.requires_grad for parameter in model.parameters())


def test_a_network_that_cannot_be_traced_is_an_error_with_a_way_out():
    class Branching(nn.Module):
        def forward(self, inputs):
            return inputs.mean(dim=(2, 3)) if inputs.sum() > 0 else -inputs.mean(dim=(2, 3))

    with pytest.raises(rw.errors.ModelError, match="pass fuse=False"):
        rw.models.optimized(Branching())
    logits = rw.models.optimized(Branching(), fuse=False)(torch.ones(2, 3, 4, 4))
    assert logits.tolist() == [[1.0, 1.0, 1.0]] * 2
    with pytest.raises(rw.errors.ModelError, match="no torch Module"):
        rw.models.optimized(lambda images: images.mean(dim=(2, 3)))
