"""The faster passes give the gradients of torch's own way, and leave networks alone that they do not fit."""

from collections import namedtuple

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

from roadworthy.attributions import faster_pass, gradients, operations, passes
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
    assert len(seen) == 8  # of each network: two points, once in both ways
    assert all(torch.equal(one, other) for one, other in zip(seen[:4], seen[4:], strict=True))


def test_normalization_becomes_part_of_the_convolution_before_it(monkeypatch):
    network, calls = Net(), []
    assert passes.faster(network, INPUTS)
    for name in ("convolved", "normalized"):
        function = getattr(faster_pass, name)
        monkeypatch.setattr(
            faster_pass, name, lambda *given, of=name, function=function: calls.append(of) or function(*given)
        )
    class_gradient(network, INPUTS, TARGETS)
    assert calls == ["convolved", "convolved"]


class Keeps(Net):
    """Keeps what a convolution returned, and a constant that it computes once."""

    constant = kept = None

    def forward(self, x):
        self.kept = self.first(x)
        if self.constant is None:
            self.constant = self.second(torch.ones(1, 6, 8, 8).contiguous(memory_format=torch.channels_last))
        return self.linear(F.relu(self.norms[0](self.kept)).mean(dim=(2, 3)) + self.constant.mean())


def test_what_a_network_or_a_hook_keeps_of_a_convolution_has_numbers_after_the_pass():
    # Placeholders are NaN; those that are still there after a pass get the numbers that they stand for.
    network, hooked = Keeps(), []
    network.first.register_forward_hook(lambda module, inputs, outcome: hooked.append(outcome))
    assert passes.faster(network, INPUTS)
    class_gradient(network, INPUTS, TARGETS)
    expected = F.conv2d(INPUTS, network.first.weight, network.first.bias, 2, 1)
    assert close(network.kept, expected)
    assert close(hooked[-1], expected)
    assert close(network.constant, network.second(torch.ones(1, 6, 8, 8)))


class Checkpointed(Net):
    """Computes a part anew on the way back, whose batch normalization reads what is outside of it."""

    on = True

    def forward(self, x):
        part, first = lambda x: F.relu(self.norms[0](x)) * x.sigmoid(), self.first(x)
        again = checkpoint(part, first, use_reentrant=False) if self.on else part(first)
        return self.linear(again.mean(dim=(2, 3)))


class Complex(Net):
    def __init__(self):
        super().__init__()
        with Key(3).torch_rng():
            self.complex = nn.Conv2d(3, 6, 3, dtype=torch.complex64)

    def forward(self, x):
        return self.linear(self.complex(x.to(torch.complex64)).abs().mean(dim=(2, 3)))


class Rewritten(Net):
    """Its weights are those of the images that it saw last."""

    def forward(self, x):
        with torch.no_grad():
            self.first.weight.copy_(x.mean().expand_as(self.first.weight))
        return super().forward(x)


class HooksItsInputs(Net):
    def forward(self, x):
        if x.requires_grad:
            x.register_hook(lambda gradient: gradient.clamp(min=0))
        return super().forward(x)


class Pair(torch.autograd.Function):
    """Keeps both for the way back."""

    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * b

    @staticmethod
    def backward(ctx, gradient):
        return gradient * ctx.saved_tensors[1], None


class KeptForBackward(Net):
    def forward(self, x):
        return self.linear(Pair.apply(F.relu(self.first(x)), self.first(x.detach())).mean(dim=(2, 3)))


class Half(Net):
    """A part is computed in another precision."""

    def forward(self, x):
        with torch.autocast("cpu", torch.bfloat16):
            first = self.first(x)
        return self.linear(self.norms[0](first.float()).tanh().mean(dim=(2, 3)))


class NamedShape(Net):
    def forward(self, x):
        first = self.first(x)
        parts = namedtuple("Parts", "one other")(first, self.norms[0](first))
        return self.linear(torch.cat(parts).reshape(2, first.size(dim=0), -1, 6).tanh().mean(dim=(0, 2)))


class Picky(Net):
    """Refuses what is no image."""

    def forward(self, x):
        if x.abs().max() > 2.5 * INPUTS.abs().max() or len(x) == 2:
            raise ValueError("no image")
        return super().forward(x)


@pytest.mark.parametrize(
    "network",
    [Checkpointed, Complex, Rewritten, HooksItsInputs, KeptForBackward, Half, NamedShape, Picky, Keeps],
    ids=lambda network: network.__name__,
)
def test_gradients_of_unusual_networks_are_those_of_torch(network, monkeypatch):
    monkeypatch.setattr(gradients, "copies_per_pass", lambda images: 1)
    nodes = ((0.3, 0.4), (0.9, 0.6))
    fast = (
        class_gradient(network(), INPUTS, TARGETS),
        line_gradient(network(), torch.tensor(0.0), INPUTS, TARGETS, nodes),
    )
    monkeypatch.setattr(gradients, "faster", lambda *given: False)
    own = (
        class_gradient(network(), INPUTS, TARGETS),
        line_gradient(network(), torch.tensor(0.0), INPUTS, TARGETS, nodes),
    )
    for one, other in zip(fast, own, strict=True):
        assert (one - other).abs().max() <= 1e-4 * other.abs().max()


def test_a_pass_that_fails_later_is_repeated_in_torchs_own_way_and_decides_nothing_for_others():
    class Exits(Net):
        """Takes an exit where `view` needs torch's own format, but not on noise."""

        def forward(self, x):
            first = self.first(x)
            return self.linear((first.view(len(x), -1) if x.mean() > 1 else first.flatten(1)).tanh()[:, :6])

    network = Exits()
    assert passes.faster(network, INPUTS)
    for _ in range(2):
        assert close(class_gradient(network, INPUTS + 2, TARGETS), literal(network, INPUTS + 2, TARGETS))
    assert passes.faster(network, INPUTS)


def test_checkpoints_that_are_turned_on_after_the_trial_are_seen():
    network = Checkpointed()
    network.on = False
    assert passes.faster(network, INPUTS)
    network.on = True
    assert close(class_gradient(network, INPUTS, TARGETS), literal(network, INPUTS, TARGETS))


def test_the_trial_leaves_random_numbers_and_statistics_as_they_were():
    network = Net()
    network.norms[0].train()
    before = network.norms[0].num_batches_tracked.item()
    assert not passes.faster(network, INPUTS)
    assert network.norms[0].num_batches_tracked == before
    torch.manual_seed(0)
    expected = torch.rand(1)
    torch.manual_seed(0)
    passes.faster(Unsteady(), INPUTS)
    assert torch.equal(torch.rand(1), expected)
