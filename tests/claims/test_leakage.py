"""The paper's findings on leakage, on CIFAR-10 with a ResNet-20; cheap maps, few images."""

import pytest
import torch

import roadworthy as rw
from roadworthy.audit.mask_detection import train_mask_detector
from roadworthy.audit.tables import detection_table, mask_table
from roadworthy.core.random import Key
from roadworthy.evaluation.sweep import explain
from roadworthy.experiments.audit_items import Settings, apart, read_share, recovered_patterns
from roadworthy.models import resnet20_cifar10

FRACTIONS = (0.1, 0.5, 0.9)


@pytest.fixture(scope="module")
def data(real_data):
    return rw.datasets.first(rw.datasets.CIFAR10(real_data), 1200)


def test_imputed_pixels_are_detected_in_a_fixed_color_and_far_less_after_linear_imputation(data):
    train, test, _ = apart(data, Key(0))
    detections = {}
    for name, imputer in (("fixed", rw.DatasetMean.of(data)), ("linear", rw.NoisyLinear())):
        network = train_mask_detector(imputer, train, Key(0).fold("predictor"))
        detections |= dict(recovered_patterns(network, name, imputer, test, FRACTIONS, Key(0)))
    table = detection_table(detections).set_index(["imputer", "masks", "fraction"])
    for masks in ("scatter", "blobs"):
        for fraction in FRACTIONS:
            fixed, linear = table.loc[("fixed", masks, fraction)], table.loc[("linear", masks, fraction)]
            assert fixed["error"] < 0.03
            assert fixed["inverse"] < 0.001  # no natural pixel has the mean color: pixels are multiples of 1/255
            assert linear["low"] > 3 * fixed["high"]


def test_the_masks_of_ig_sg_predict_the_class_clearly_above_chance(data, real_data):
    model = resnet20_cifar10(real_data / "weights" / "resnet20_cifar10.safetensors").eval()
    method = {"IG-SG": rw.attributions.smoothgrad(rw.attributions.IntegratedGradients(steps=2), samples=2, sigma=0.2)}
    key = Key(0)
    maps = torch.cat([explain(method, model, batch, key.fold("maps"))["IG-SG"] for batch in data.batches(100)])
    labels = torch.cat([batch.labels for batch in data.batches(500)])
    predictions = read_share(maps, 0.5, labels, data.ids, key, Settings())
    row = mask_table({("IG-SG", 0.5): predictions}, ("morf",), (0.5,)).iloc[0]
    assert row["low"] > row["chance"]
    assert row["bits_low"] > 0
