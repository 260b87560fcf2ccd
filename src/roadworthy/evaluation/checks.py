"""What can be checked of a training before its first epoch: labels, networks and splits."""

import hashlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch

from roadworthy.core.errors import InputError, SameStartWarning, ShapeError, TrainTestOverlapWarning
from roadworthy.core.random import Key
from roadworthy.core.types import UNLABELED, Dataset
from roadworthy.models.normalized import as_model

Hashed = dict[bytes, tuple[int, int]]
"""hash of an image's bytes to its label and id"""


def check_factory(factory: Callable[[], Any]) -> None:
    """Each call must give a network of its own, with weights of its own."""
    made = []
    for seed in (0, 1):
        with Key(seed).fold("factory").torch_rng():
            made.append(factory())
    first, second = (dict(as_model(one).named_parameters()) for one in made)
    if made[0] is made[1] or any(one is second.get(name) for name, one in first.items()):
        raise InputError(
            "the factory returned the same network twice: make a new one in each call, "
            "as in factory=lambda: small_cnn(); each point is trained from scratch"
        )
    if all(torch.equal(one, second[name]) for name, one in first.items()):
        warnings.warn(
            "the factory's networks start with the same weights under every seed: if they are trained ones, nothing is "
            "retrained from scratch, and seeds differ in the order of images only",
            SameStartWarning,
            stacklevel=2,
        )


def check_labeled(data: Dataset) -> None:
    if not len(data):
        raise ShapeError("the train split is empty")
    if isinstance(labels := getattr(data, "labels", None), torch.Tensor) and (labels == UNLABELED).any():
        raise InputError("the train split holds images without a label: an evaluator that trains needs one for each")


def check_splits(train: Dataset, test: Dataset) -> None:
    """Raise if a test class has no train image; warn if the splits share images."""
    names = test.classes
    learned, tested = _labels_and_images(train), _labels_and_images(test)
    labels = {label for label, _ in learned.values()}
    if missing := sorted({label for label, _ in tested.values()} - labels - {UNLABELED}):
        called = names[missing[0]] if missing[0] < len(names) else f"class {missing[0]}"
        raise InputError(
            f"the train split has no image of {called} ({len(missing)} class(es) of the test split are missing from "
            f"its {len(train)} images): take more train images"
        )
    if both := _in_both(learned, tested):
        warnings.warn(
            f"{both}: memorized images inflate accuracy; use another split", TrainTestOverlapWarning, stacklevel=2
        )


def check_apart(train: Dataset, test: Dataset) -> None:
    """Raise if the splits share images: an imputer must not be trained on the images it will impute."""
    if both := _in_both(_labels_and_images(train), _labels_and_images(test)):
        raise InputError(
            f"{both}: an imputer must not be trained on the images it will impute; use another train split"
        )


def _in_both(learned: Hashed, tested: Hashed) -> str:
    both = [image for image in tested if image in learned]
    if not both:
        return ""
    a, b = learned[both[0]][1], tested[both[0]][1]
    return f"{len(both)} of {len(tested)} test images are train images too (test image {b} is train image {a})"


def _labels_and_images(data: Dataset) -> Hashed:
    return dict(_hashed(data))


def _hashed(data: Dataset) -> Iterator[tuple[bytes, tuple[int, int]]]:
    for batch in data.batches(256):
        for image, label, id in zip(batch.images.numpy(), batch.labels.tolist(), batch.ids.tolist(), strict=True):
            yield hashlib.blake2b(image.tobytes(), digest_size=16).digest(), (label, id)
