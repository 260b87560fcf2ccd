"""Where a model normalizes does not decide whether Integrated Gradients is good: on CIFAR-10 and a ResNet-20."""

import pytest
from torch import nn

import roadworthy as rw
from roadworthy.datasets import CIFAR10, first
from roadworthy.models import CIFAR10_RESNET20, resnet20_cifar10

pytestmark = pytest.mark.slow


class Inside(nn.Module):
    """The same classifier; nobody sees that it normalizes."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, images):
        return self.model(images)


@pytest.fixture
def model(real_data):
    return resnet20_cifar10(real_data / "weights" / "resnet20_cifar10.safetensors")


@pytest.fixture
def data(real_data):
    return first(CIFAR10(real_data, "test"), 200)


def scores(model, data, **baselines):
    methods = {name: rw.attributions.IntegratedGradients(8, baseline=value) for name, value in baselines.items()}
    ranking = rw.compare(model, data, methods, controls=(), progress=False).ranking()
    return dict(zip(ranking["method"], ranking["srg"], strict=True))


def test_ig_is_nearly_as_good_if_the_normalization_is_hidden_in_the_network(model, data):
    outside, inside = scores(model, data, ig="mean"), scores(Inside(model), data, ig="mean", black="black")
    # Measured: .281 outside; inside .270 from gray, and −.009 from black, which was the default.
    assert outside["ig"] > 0.2
    assert inside["ig"] == pytest.approx(outside["ig"], abs=0.04)
    assert inside["black"] < 0.1


def test_a_forgotten_or_doubled_normalization_warns(model, data):
    options = {"fractions": (0.5,), "controls": (), "imputers": "image-mean", "progress": False}
    for wrong, hint in (
        (model.network, "with ImageNet's normalization"),  # 41 % of the images right
        (rw.Normalized(Inside(model), **CIFAR10_RESNET20), "without its normalization"),  # 21 %
    ):
        with pytest.warns(rw.errors.LowAccuracyWarning, match=f"of 200 images .*{hint} on 59 of 64"):
            rw.compare(wrong, data, {"edges": "edges"}, **options)
