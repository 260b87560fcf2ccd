"""The demo: the paper's eight methods on digits with a small CNN, or on CIFAR-10 with a ResNet-20."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch

from roadworthy.attributions import paper_methods
from roadworthy.core.errors import DataError
from roadworthy.core.random import Key
from roadworthy.core.types import Dataset
from roadworthy.datasets import CIFAR10, Digits, first
from roadworthy.models import resnet20_cifar10, small_cnn
from roadworthy.models.normalized import Normalized
from roadworthy.training.loop import EpochRecord, fit, shuffled
from roadworthy.training.recipe import Recipe

RECIPE = Recipe(epochs=6, batch_size=64, lr=5e-3, schedule="cosine")


PAPER_NOISE: dict[str, Any] = {"ig_sigma": 0.1, "gb_sigma": 0.5, "units": "pixels"}
"""that of the paper's CIFAR-10 models, for models with another normalization"""


class Demo(NamedTuple):
    model: Normalized
    data: Dataset
    methods: dict[str, Any]
    accuracy: float | None
    """on all held-out images; None for a model that was loaded"""


def digits_demo(images: int = 500, on_epoch: Callable[[EpochRecord], object] | None = None) -> Demo:
    """Real handwritten digits that come with a pip package, and a CNN trained on them."""
    test, model = Digits("test"), digits_cnn(on_epoch)
    (whole,) = test.batches(len(test))
    with torch.no_grad():
        hits = model(whole.images).argmax(dim=1) == whole.labels
    methods = paper_methods(steps=8, ig_samples=4, gb_samples=8, **PAPER_NOISE)
    return Demo(model, first(test, images), methods, float(hits.float().mean()))


def digits_cnn(on_epoch: Callable[[EpochRecord], object] | None = None) -> Normalized:
    """A small CNN trained on the digits, on one thread so that it always has the same weights; it takes seconds."""
    train, key = Digits("train"), Key(0).fold("demo")
    (whole,) = train.batches(len(train))
    with key.fold("init").torch_rng():
        model = Normalized(small_cnn(classes=10, channels=1), mean=0.13, std=0.31)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        fit(model, shuffled(whole.images, whole.labels, RECIPE.batch_size, key), RECIPE, key=key, on_epoch=on_epoch)
    finally:
        torch.set_num_threads(threads)
    return model.eval()


def cifar10_demo(root: Path, images: int = 500) -> Demo:
    """CIFAR-10 test images and a ResNet-20 with the weights of ROOT/weights/resnet20_cifar10.safetensors."""
    weights = root / "weights" / "resnet20_cifar10.safetensors"
    if not weights.exists():
        raise DataError(f"{weights} is missing: the CIFAR-10 demo needs ResNet-20 weights there")
    methods = paper_methods(steps=16, ig_samples=8, gb_samples=8, **PAPER_NOISE)
    return Demo(resnet20_cifar10(weights), first(CIFAR10(root, "test"), images), methods, None)
