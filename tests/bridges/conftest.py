import pytest
import torch
from torch import nn

import worlds
from roadworthy.core.random import Key
from roadworthy.core.types import Batch
from roadworthy.models.normalized import Normalized


class Net(nn.Module):
    """Modules with the names that people know, and no activation used twice."""

    def __init__(self, classes=4):
        super().__init__()
        self.layer1 = nn.Sequential(nn.Conv2d(3, 6, 3, padding=1), nn.ReLU())
        self.layer2 = nn.Sequential(nn.Conv2d(6, 8, 3, stride=2, padding=1), nn.ReLU())
        self.pool, self.flatten = nn.AdaptiveAvgPool2d(2), nn.Flatten()
        self.fc = nn.Linear(32, classes)

    def forward(self, inputs):
        return self.fc(self.flatten(self.pool(self.layer2(self.layer1(inputs)))))


@pytest.fixture
def network():
    with Key(3).torch_rng():
        return Net().eval()


@pytest.fixture
def model(network):
    return Normalized(network, mean=(0.5, 0.4, 0.3), std=(0.2, 0.2, 0.3)).eval()


@pytest.fixture
def batch():
    world = worlds.quadrants(n=5, size=16)
    return Batch(torch.arange(5), world.images, world.labels)


@pytest.fixture
def inputs(model, batch):
    """What the network takes."""
    return model.normalize(batch.images)
