"""The faster passes give the gradients of torch's own way, and leave networks alone that they do not fit."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from roadworthy.attributions import gradients, operations, passes
from roadworthy.attributions.gradients import GuidedBackprop, IntegratedGradients, class_gradient, line_gradient
from roadworthy.core.random import Key

INPUTS = Key(0).normal(range(3), (3, 8, 8))
TARGETS = torch.tensor([0, 1, 2])


class Net(nn.Module):
    """Two convolutions with batch normalization whose statistics are not the identity."""

    def __init__(self, first=None):
        super().__init__()
        with Key(1).torch_rng():
            self.first = first or nn.Conv2d(3, 6, 3, stride=2, padding=1)
            self.second = nn.Conv2d(6, 6, 3, padding=1, groups=2, bias=False)
            self.norms = nn.ModuleList(nn.BatchNorm2d(6) for _ in range(2))
            self.linear = nn.Linear(6, 4)
            for norm in self.norms:
                for values in (norm.running_mean, norm.weight.data, norm.bias.data):
                    values.normal_()
                norm.running_var.uniform_(0.5, 1.5)
        self.eval()

    def forward(self, x):
        x = F.relu_(self.norms[0](self.first(x)))
        return self.linear(F.relu(self.norms[1](self.second(x))).mean(dim=(2, 3)))


class TwoReaders(Net):
    """The inputs are read by two convolutions, and by what is none."""

    def __init__(self):
        super().__init__()
        self.other = nn.Conv2d(3, 4, 3, dilation=2)

    def forward(self, x):
        return super().forward(x) + F.softplus(self.other(x.exp())).mean(dim=(2, 3)) * self.other(x).sum(dim=(2, 3))


class ChangedInputs(Net):
    """The first convolution reads what is no longer the inputs."""

    def forward(self, x):
        return super().forward(x.mul_(x) if not x.is_leaf else x * x)


class ReadsMemory(Net):
    """Relies on images being stored channel by channel."""

    def forward(self, x):
        return super().forward(x.as_strided(x.shape, (192, 64, 8, 1)))


class Views(Net):
    def forward(self, x):
        return super().forward(x) + x.view(len(x), 4, -1).sum(dim=2)


class Unsteady(Net):
    def forward(self, x):
        return super().forward(x) + torch.rand(1)


class OfItself(Net):
    """Computes with gradients of its own."""

    def forward(self, x):
        with torch.enable_grad():
            x = x if x.requires_grad else x.detach().requires_grad_()
            (slope,) = torch.autograd.grad(self.first(x).square().sum(), x, create_graph=True)
        return super().forward(x) + slope.mean(dim=(2, 3)).sum(dim=1, keepdim=True)


class Twice(Net):
    """The outcome of a convolution is used as it is, then normalized, then used again."""

    def forward(self, x):
        first = self.first(x)
        before = first.sum(dim=(2, 3))
        normalized = self.norms[0](first)
        return self.linear(before + (normalized * first).tanh().mean(dim=(2, 3)))


class ChangedOutcome(Net):
    """The outcome of a convolution is changed in place before it is normalized; lists of tensors are joined."""

    def forward(self, x):
        first, second = self.first(x), self.first(-x)
        first += 1
        F.relu_(second)
        joined = torch.cat([self.norms[0](first), self.norms[1](second)])
        return self.linear(sum(joined.split(len(x))).mean(dim=(2, 3)))


class Own(torch.autograd.Function):
    """torch tells nobody that it is applied."""

    @staticmethod
    def forward(ctx, x):
        return 2 * x

    @staticmethod
    def backward(ctx, gradient):
        return 2 * gradient


class OwnFunction(Net):
    def forward(self, x):
        return self.linear(Own.apply(self.first(x)).tanh().mean(dim=(2, 3)))


class ChangedLater(Net):
    """What a convolution read is changed before its outcome is normalized. Torch itself refuses to go back then."""

    def forward(self, x):
        x = x * 1
        first = self.first(x)
        x.zero_()
        return self.linear(self.norms[0](first).tanh().mean(dim=(2, 3)))


class Frozen(nn.Module):
    """Weights without gradients that are computed in each pass, each when the one before is gone."""

    def __init__(self):
        super().__init__()
        with Key(2).torch_rng():
            layers = [nn.Conv2d(3, 3, 3, padding=1) for _ in range(6)]
            for layer in layers:
                nn.utils.parametrizations.spectral_norm(layer)
            self.layers = nn.Sequential(*layers)
        self.eval().requires_grad_(False)

    def forward(self, x):
        return self.layers(x).tanh().mean(dim=(2, 3))


def literal(network, inputs, targets):
    inputs = inputs.clone().requires_grad_()
    logits = network(inputs)
    return torch.autograd.grad(sum(logits[i, target] for i, target in enumerate(targets)), inputs)[0]


def literal_sum(network, origin, path, nodes):
    return sum(weight * literal(network, origin + position * path, TARGETS) for position, weight in nodes)


def close(one, other):
    return (one - other).abs().max() <= 1e-5 * other.abs().max()


NETWORKS = {
    "plain": Net,
    "two readers": TwoReaders,
    "same padding": lambda: Net(nn.Conv2d(3, 6, 3, padding="same")),
    "reflecting padding": lambda: Net(nn.Conv2d(3, 6, 3, padding=1, padding_mode="reflect", bias=False)),
    "weight norm": lambda: Net(nn.utils.parametrizations.weight_norm(nn.Conv2d(3, 6, 3))).eval(),
    "frozen spectral norm": Frozen,
    "used twice": Twice,
    "changed outcome": ChangedOutcome,
}


@pytest.mark.parametrize("name", NETWORKS)
def test_the_gradient_is_that_of_torch(name):
    network = NETWORKS[name]()
    assert passes.faster(network, INPUTS)
    assert close(class_gradient(network, INPUTS, TARGETS), literal(network, INPUTS, TARGETS))


@pytest.mark.parametrize("origin", [torch.tensor(0.0), torch.full((1, 3, 8, 8), 0.3), INPUTS.flip(0)])
@pytest.mark.parametrize("name", NETWORKS)
def test_the_weighted_sum_along_a_line_is_that_of_single_gradients(name, origin, monkeypatch):
    monkeypatch.setattr(gradients, "copies_per_pass", lambda images: 2)  # the third node is a pass of its own
    network, nodes = NETWORKS[name](), ((0.1, 0.2), (0.5, 0.5), (0.8, -0.3))
    computed = line_gradient(network, origin, INPUTS, TARGETS, nodes)
    assert close(computed, literal_sum(network, origin, INPUTS, nodes))
    assert not computed.requires_grad


def test_a_convolution_of_the_inputs_goes_back_once_for_all_steps(monkeypatch):
    calls, conv2d_input = [], operations.conv2d_input
    network = Net()
    assert passes.faster(network, INPUTS)
    monkeypatch.setattr(operations, "conv2d_input", lambda *given: calls.append(given) or conv2d_input(*given))
    IntegratedGradients(steps=50).maps(network, INPUTS, TARGETS)
    of_images = [shape for shape, *_ in calls if shape[1:] == INPUTS.shape[1:]]
    assert of_images == [INPUTS.shape]


NOT_FASTER = [ReadsMemory, Views, OfItself, OwnFunction]


@pytest.mark.parametrize("network", [*NOT_FASTER, ChangedLater, Unsteady], ids=lambda network: network.__name__)
def test_a_network_that_fails_or_returns_other_logits_is_passed_in_torchs_own_way(network):
    assert not passes.faster(network(), INPUTS)


@pytest.mark.parametrize("network", NOT_FASTER, ids=lambda network: network.__name__)
def test_its_gradients_are_right_too(network):
    network, nodes = network(), ((0.3, 0.4), (0.9, 0.6))
    assert close(class_gradient(network, INPUTS, TARGETS), literal(network, INPUTS, TARGETS))
    computed = line_gradient(network, torch.tensor(0.0), INPUTS, TARGETS, nodes)
    assert close(computed, literal_sum(network, 0.0, INPUTS, nodes))


def test_inputs_that_the_network_changes_in_place_are_no_longer_on_the_line():
    # Without the check of versions the first convolution would be that of the unchanged inputs.
    network, nodes = ChangedInputs(), ((0.3, 0.4), (0.9, 0.6))
    computed = line_gradient(network, torch.tensor(0.0), INPUTS, TARGETS, nodes)
    expected = sum(
        weight * literal(lambda x: Net.forward(network, x * x), position * INPUTS, TARGETS)
        for position, weight in nodes
    )
    assert close(computed, expected)


def test_batch_normalization_in_train_mode_is_left_alone():
    network = Net()
    network.norms[0].train()
    before = network.norms[0].momentum, network.norms[0].weight.clone()
    assert close(class_gradient(network, INPUTS, TARGETS), literal(network, INPUTS, TARGETS))
    assert before[1].equal(network.norms[0].weight)


def test_no_parameter_gets_a_gradient_and_none_changes_its_format():
    network = Net()
    GuidedBackprop().maps(network, INPUTS, TARGETS)
    IntegratedGradients(steps=3).maps(network, INPUTS, TARGETS)
    assert all(parameter.grad is None and parameter.is_contiguous() for parameter in network.parameters())


def test_the_way_is_chosen_alike_whatever_images_come_first():
    seen = []

    class Watched(Net):
        def forward(self, x):
            seen.append(x.detach().clone())
            return super().forward(x)

    for inputs in (INPUTS, 5 * INPUTS[:1] + 1):
        assert passes.faster(Watched(), inputs)
    (a, b), (c, d) = seen[:2], seen[2:]  # of each network: the points of the trial, once in both ways
    assert torch.equal(a, c)
    assert torch.equal(b, d)


def test_normalization_becomes_part_of_the_convolution_before_it(monkeypatch):
    network, calls = Net(), []
    assert passes.faster(network, INPUTS)
    for name in ("convolved", "normalized"):
        function = getattr(passes, name)
        monkeypatch.setattr(
            passes, name, lambda *given, of=name, function=function: calls.append(of) or function(*given)
        )
    class_gradient(network, INPUTS, TARGETS)
    assert calls == ["convolved", "convolved"]


def test_what_a_hook_keeps_of_a_convolution_has_numbers_after_the_pass():
    # The network was passed in the faster way before the hook came; a placeholder would be NaN by now.
    network, kept = Net(), []
    assert passes.faster(network, INPUTS)
    handle = network.first.register_forward_hook(lambda module, inputs, outcome: kept.append(outcome))
    class_gradient(network, INPUTS, TARGETS)
    handle.remove()
    assert torch.equal(kept[0], network.first(INPUTS))
    assert passes.faster(network, INPUTS)
