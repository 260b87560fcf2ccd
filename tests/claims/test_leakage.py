"""The paper's findings on leakage, on real CIFAR-10 images with a real ResNet-20; cheap maps, few images."""

import pytest
import torch

import roadworthy as rw
from roadworthy.audit.mask_detection import train_predictor
from roadworthy.audit.tables import mask_table, recovery_table
from roadworthy.core.random import Key
from roadworthy.evaluation.sweep import explain
from roadworthy.experiments.auditing import Settings, apart, read_share, recovered_patterns
from roadworthy.models import resnet20_cifar10

FRACTIONS = (0.1, 0.5, 0.9)


@pytest.fixture(scope="module")
def data(real_data):
    return rw.datasets.first(rw.datasets.CIFAR10(real_data), 1200)


def test_filled_pixels_are_told_in_a_fixed_color_and_far_less_in_a_linear_fill_at_every_fraction(data):
    learned, tested, _ = apart(data, Key(0))
    found = {}
    for name, imputer in (("fixed", rw.DatasetMean.of(data)), ("linear", rw.NoisyLinear())):
        network = train_predictor(imputer, learned, Key(0).fold("predictor"))
        found |= dict(recovered_patterns(network, name, imputer, tested, FRACTIONS, Key(0)))
    table = recovery_table(found).set_index(["imputer", "masks", "fraction"])
    for masks in ("scatter", "blobs"):
        for fraction in FRACTIONS:
            fixed, linear = table.loc[("fixed", masks, fraction)], table.loc[("linear", masks, fraction)]
            assert fixed["error"] < 0.03
            assert fixed["inverse"] < 0.001  # no natural pixel has the mean's color: pixels are multiples of 1/255
            assert linear["low"] > 3 * fixed["high"]


def test_the_masks_of_ig_sg_alone_tell_the_class_clearly_above_chance(data, real_data):
    model = resnet20_cifar10(real_data / "weights" / "resnet20_cifar10.safetensors").eval()
    method = {"IG-SG": rw.attributions.smoothgrad(rw.attributions.IntegratedGradients(steps=2), samples=2, sigma=0.2)}
    key = Key(0)
    scores = torch.cat([explain(method, model, batch, key.fold("maps"))["IG-SG"] for batch in data.batches(100)])
    labels = torch.cat([batch.labels for batch in data.batches(500)])
    prediction = read_share(scores, 0.5, labels, data.ids, key, Settings())
    row = mask_table({("IG-SG", 0.5): prediction}, ("morf",), (0.5,)).iloc[0]
    assert row["low"] > row["chance"]
    assert row["bits_low"] > 0
