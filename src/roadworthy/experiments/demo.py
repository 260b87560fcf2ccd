"""The demo: the paper's eight methods on CIFAR-10 with a ResNet-20, or on digits with a small CNN."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch

from roadworthy.attributions import paper_methods
from roadworthy.core.masks import FRACTIONS
from roadworthy.core.random import Key
from roadworthy.core.types import Dataset
from roadworthy.datasets import CIFAR10, CIFAR10Sample, Digits, first
from roadworthy.models import resnet20_cifar10, small_cnn
from roadworthy.models.normalized import Normalized
from roadworthy.training.loop import EpochRecord, fit, shuffled
from roadworthy.training.recipe import Recipe

RECIPE = Recipe(epochs=6, batch_size=64, lr=5e-3, schedule="cosine")

PAPER_NOISE: dict[str, Any] = {"ig_sigma": 0.1, "gb_sigma": 0.5, "units": "pixels"}
"""that of the paper's CIFAR-10 models, for models with another normalization"""

FEW_FRACTIONS = (0.1, 0.3, 0.5, 0.7, 0.9)
"""Each with its complement: what MoRF removes is compared with what LeRF keeps."""

IMAGES = 500
"""of data sets that have more"""


class Demo(NamedTuple):
    model: Normalized
    data: Dataset
    methods: dict[str, Any]
    fractions: tuple[float, ...]
    about: str
    """what is compared on what, in a sentence"""


def sample_demo(images: int | None = None) -> Demo:
    """The images and weights that come with the package; plans/demo.toml is the same as a plan."""
    sample = CIFAR10Sample()
    data = first(sample, images) if images else sample
    methods = paper_methods(steps=8, ig_samples=4, gb_samples=8, **PAPER_NOISE)
    # Stored this way, a convolution takes two thirds of the time on a CPU.
    model = resnet20_cifar10().to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return Demo(model, data, methods, FEW_FRACTIONS, f"A ResNet-20 on {len(data)} CIFAR-10 test images.")


def cifar10_demo(root: Path, images: int | None = None) -> Demo:
    """The first test images of a downloaded CIFAR-10, with larger ensembles and all fractions."""
    data = first(CIFAR10(root, "test"), images or IMAGES)
    methods = paper_methods(steps=16, ig_samples=8, gb_samples=8, **PAPER_NOISE)
    about = f"A ResNet-20 on the first {len(data):,} CIFAR-10 test images."
    return Demo(resnet20_cifar10(), data, methods, FRACTIONS, about)


def digits_demo(images: int | None = None, on_epoch: Callable[[EpochRecord], object] | None = None) -> Demo:
    """Real handwritten digits that come with a pip package, and a CNN trained on them."""
    test, model = Digits("test"), digits_cnn(on_epoch)
    (whole,) = test.batches(len(test))
    with torch.no_grad():
        hits = model(whole.images).argmax(dim=1) == whole.labels
    about = f"A small CNN trained on 4,000 digits: {float(hits.float().mean()):.1%} on 1,000 held-out ones."
    methods = paper_methods(steps=8, ig_samples=4, gb_samples=8, **PAPER_NOISE)
    return Demo(model, first(test, images or IMAGES), methods, FRACTIONS, about)


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
