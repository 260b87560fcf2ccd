"""Shuffled weights: from the output on, the same every time, and restored to the bit."""

import pytest
import torch
from torch import nn

from roadworthy.audit.randomization import shuffled_weights
from roadworthy.core.random import Key


@pytest.fixture
def network():
    with Key(0).torch_rng():
        return nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 5))


def weights(network):
    return {name: weight.detach().clone() for name, weight in network.named_parameters()}


def test_half_of_the_layers_are_those_near_the_output(network):
    before = weights(network)
    with shuffled_weights(network, 0.5, Key(1)):
        during = weights(network)
    changed = {name for name in before if not torch.equal(before[name], during[name])}
    assert changed == {"3.weight", "3.bias"}
    for name in changed:  # the same values in other places
        assert torch.equal(before[name].flatten().sort().values, during[name].flatten().sort().values)


def test_the_weights_come_back_to_the_bit_also_after_an_error(network):
    before = weights(network)
    with pytest.raises(RuntimeError), shuffled_weights(network, 1.0, Key(1)):
        network(torch.zeros(1, 2, 8, 8))  # two channels are one too many
    assert all(torch.equal(weight, before[name]) for name, weight in weights(network).items())


def test_the_same_key_shuffles_alike_and_a_share_of_nothing_changes_nothing(network):
    found = []
    for key in (Key(1), Key(1), Key(2)):
        with shuffled_weights(network, 1.0, key):
            found.append(network[3].weight.detach().clone())
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])
    before = weights(network)
    with shuffled_weights(network, 0.0, Key(1)):
        assert all(torch.equal(weight, before[name]) for name, weight in weights(network).items())
