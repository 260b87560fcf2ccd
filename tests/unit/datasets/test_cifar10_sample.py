"""The sample of CIFAR-10 that comes with the package: which images, and that they are exact."""

import numpy as np
import torch

from roadworthy.datasets import CIFAR10, CIFAR10Sample


def test_it_has_20_images_of_each_class_with_increasing_ids_of_the_test_split():
    sample = CIFAR10Sample()
    (whole,) = sample.batches(200)
    assert len(sample) == len(whole) == 200
    assert np.bincount(whole.labels).tolist() == [20] * 10
    assert sample.ids.diff().min() > 0
    assert torch.equal(sample.ids, whole.ids)
    assert whole.images.shape == (200, 3, 32, 32)
    # CIFAR-10's first test images, as everyone knows them: cat, ship, ship, airplane.
    assert [sample.classes[label] for label in whole.labels[:4]] == ["cat", "ship", "ship", "airplane"]
    assert sample.ids[:4].tolist() == [0, 1, 2, 3]


def test_images_can_be_read_at_random():
    sample = CIFAR10Sample()
    (whole,) = sample.batches(200)
    part = sample.at([7, 150])
    assert torch.equal(part.images, whole.images[[7, 150]])
    assert torch.equal(part.ids, whole.ids[[7, 150]])


def test_it_is_the_first_20_of_each_class_bit_by_bit(real_data):
    (sample,), (test,) = CIFAR10Sample().batches(200), CIFAR10(real_data, "test").batches(10_000)
    first = torch.cat([torch.nonzero(test.labels == label)[:20, 0] for label in range(10)]).sort().values
    assert torch.equal(sample.ids, test.ids[first])
    assert torch.equal(sample.labels, test.labels[first])
    assert torch.equal(sample.images, test.images[first])
    assert CIFAR10Sample().classes == CIFAR10(real_data).classes
