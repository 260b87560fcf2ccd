"""The paper's findings on leakage, on CIFAR-10 with a ResNet-20; cheap maps, few images."""

from itertools import product

import pytest
import torch

import roadworthy as rw
from roadworthy.audit.mask_detection import detect, train_mask_detector, train_test_images
from roadworthy.audit.mask_information import MASK_CLASSIFIERS, classify_masks
from roadworthy.audit.tables import DetectionSetting, detection_table, mask_table
from roadworthy.core.masks import MASKS, random_removal
from roadworthy.core.random import Key
from roadworthy.evaluation.sweep import explain
from roadworthy.models import resnet20_cifar10

pytestmark = pytest.mark.slow

FRACTIONS = (0.1, 0.5, 0.9)


def test_imputed_pixels_are_detected_in_a_fixed_color_and_far_less_after_linear_imputation(real_data):
    data, key = rw.datasets.first(rw.datasets.CIFAR10(real_data), 1200), Key(0)
    train, test, _ = train_test_images(data, key)
    detections = {}
    for name, imputer in (("fixed", rw.DatasetMean.of(data)), ("linear", rw.NoisyLinear())):
        network = train_mask_detector(imputer, train, key.fold("predictor"))
        for masks, fraction in product(MASKS, FRACTIONS):
            removed = random_removal(test, masks, fraction, key.fold("predictor", "test"))
            detections[DetectionSetting(name, masks, "", fraction)] = detect(network, imputer, test, removed, key)
    table = detection_table(detections).set_index(["imputer", "masks", "fraction"])
    for masks, fraction in product(MASKS, FRACTIONS):
        fixed, linear = table.loc[("fixed", masks, fraction)], table.loc[("linear", masks, fraction)]
        assert fixed["error"] < 0.03
        assert fixed["inverse"] < 0.001  # no natural pixel has the mean color: pixels are multiples of 1/255
        assert linear["low"] > 3 * fixed["high"]


def test_the_masks_of_ig_sg_predict_the_class_clearly_above_chance(real_data):
    # With 1,200 images the interval starts at .127, where Fano's inequality proves no bits yet: it takes more images.
    data, key = rw.datasets.first(rw.datasets.CIFAR10(real_data), 4000), Key(0)
    model = resnet20_cifar10(real_data / "weights" / "resnet20_cifar10.safetensors").eval()
    method = {"IG-SG": rw.attributions.smoothgrad(rw.attributions.IntegratedGradients(steps=2), samples=2, sigma=0.2)}
    maps = torch.cat([explain(method, model, batch, key.fold("maps"))["IG-SG"] for batch in data.batches(100)])
    labels = torch.cat([batch.labels for batch in data.batches(500)])
    removed = rw.removal_mask(maps, 0.5, ids=data.ids)
    predictions = classify_masks(removed, labels, data.ids, key.fold("masks"), MASK_CLASSIFIERS["small"])
    row = mask_table({("IG-SG", 0.5): [predictions]}, ("morf",), (0.5,)).iloc[0]
    assert row["low"] > row["chance"]
    assert row["bits_low"] > 0
