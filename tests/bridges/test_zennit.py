"""zennit: attributors and composites give the relevance that zennit itself gives."""

import pytest
import torch
from torch import nn

import roadworthy as rw
from libraries import library
from roadworthy.core.random import Key
from roadworthy.experiments.adapt import as_method

zennit_attribution, zennit_composites = library("zennit.attribution"), library("zennit.composites")
KEY = Key(0).fold("maps")


def method(value, batch):
    return as_method("mine", value, rw.datasets.Arrays(batch.images, batch.labels))


def relevance(attributor, inputs, labels):
    with attributor:
        return attributor(inputs.clone().requires_grad_(), torch.eye(4)[labels])[1].detach()


def test_a_composite_alone_and_in_an_attributor_give_zennits_relevance(network, model, batch, inputs):
    composite = zennit_composites.EpsilonPlusFlat()
    attributor = zennit_attribution.Gradient(network, composite)
    expected = relevance(attributor, inputs, batch.labels)
    assert torch.allclose(method(attributor, batch)(model, batch, KEY), expected)
    assert torch.allclose(method(composite, batch)(model, batch, KEY), expected)
    assert expected.abs().max() > 0
    # The composite is registered during the call only.
    assert composite.handles == []
    assert not any(module._forward_hooks or module._backward_hooks for module in network.modules())


def test_rules_by_the_name_of_a_module_find_it(network, model, batch, inputs):
    rules = [(["fc"], library("zennit.rules").ZPlus())]
    attributor = zennit_attribution.Gradient(network, zennit_composites.NameMapComposite(rules))
    expected = relevance(attributor, inputs, batch.labels)
    ours = method(zennit_composites.NameMapComposite(rules), batch)(model, batch, KEY)
    assert torch.allclose(ours, expected)
    plain = relevance(zennit_attribution.Gradient(network), inputs, batch.labels)
    assert not torch.allclose(ours, plain)


def test_an_attributor_with_noise_is_seeded(network, model, batch):
    smooth = method(zennit_attribution.SmoothGrad(network, noise_level=0.2, n_iter=3), batch)
    assert torch.equal(smooth(model, batch, KEY), smooth(model, batch, KEY))


def test_a_class_is_refused_with_the_line_to_write(batch):
    with pytest.raises(rw.errors.InputError, match=r"EpsilonPlusFlat is a class: give an object"):
        method(zennit_composites.EpsilonPlusFlat, batch)


def test_another_network_is_refused(model, batch):
    attributor = zennit_attribution.Gradient(nn.Sequential(nn.Flatten(), nn.Linear(768, 4)))
    with pytest.raises(rw.errors.InputError, match="another network"):
        method(attributor, batch)(model, batch, KEY)
