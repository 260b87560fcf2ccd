"""Mask information (paper, 4): how well the class can be told from which pixels are gone, and from nothing else.

A small network reads the binary masks alone. Every image is evaluated once, by a network that did not learn from it
(cross-fitting), so the answer is a Predictions like any other; accuracy, interval and bits belong to floor 3.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import adaptive_avg_pool2d

from roadworthy.core.errors import InputError
from roadworthy.core.random import Key
from roadworthy.core.results import Predictions
from roadworthy.core.types import Ids, Labels, Removed
from roadworthy.models import mask_cnn, resnet18
from roadworthy.training.loop import EpochRecord, fit, shuffled
from roadworthy.training.recipe import Recipe
from roadworthy.training.trainer import split

FOLDS = 5


@dataclass(frozen=True)
class Reader:
    """Who reads masks: `make(classes)` a network for one channel, how it is trained, how large masks may be."""

    make: Callable[[int], nn.Module]
    recipe: Recipe
    side: int
    """larger masks are averaged down to this many pixels a side"""


READERS: Mapping[str, Reader] = {
    "small": Reader(
        mask_cnn, Recipe(epochs=8, batch_size=64, lr=2e-3, weight_decay=1e-4, schedule="cosine", validation=0.15), 32
    ),
    # The paper's: a ResNet-18, trained as its classifiers are.
    "resnet18": Reader(
        partial(resnet18, stem="imagenet", channels=1),
        Recipe(epochs=40, batch_size=32, lr=0.01, optimizer="sgd", schedule="step", milestones=(25,)),
        224,
    ),
}


def read_masks(
    removed: Removed,
    labels: Labels,
    ids: Ids,
    key: Key,
    reader: Reader,
    on_epoch: Callable[[EpochRecord], object] | None = None,
) -> Predictions:
    """What a classifier of the masks alone says of each image, learned from the other folds.

    The epoch is chosen on a validation split of what is learned from. A mask and its complement say the same: inputs
    are −1 and 1. Masks that are all equal tell nothing: then the commonest class is the answer, and nothing is trained.
    """
    classes, targets = torch.unique(labels, return_inverse=True)
    shares = torch.bincount(targets) / len(targets)
    if bool((removed == removed[:1]).all()):
        probabilities = shares.expand(len(targets), -1)
    else:
        inputs = _inputs(removed, reader.side)
        probabilities = torch.empty(len(targets), len(classes))
        for fold, (learned, held) in enumerate(folds(targets.numpy(), key)):
            own = key.fold("fold", fold)
            network = _trained(inputs[learned], targets[learned], len(classes), reader, own, on_epoch)
            probabilities[held] = _told(network, inputs[held])
    return Predictions(
        ids=ids.numpy().astype(np.int64),
        labels=labels.numpy().astype(np.int64),
        predicted=classes[probabilities.argmax(dim=1)].numpy().astype(np.int64),
        probability=probabilities.gather(1, targets[:, None])[:, 0].numpy().astype(np.float32),
    )


def folds(labels: NDArray[np.int64], key: Key) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """(rows to learn from, rows held out): each row is held out once, and each class is spread over the folds.

    Were a class commoner in what is learned than in what is held out, even guessing would fall below chance.
    """
    mixed = key.fold("folds").permutation(0, len(labels))
    by_class = mixed[np.argsort(labels[mixed], kind="stable")]
    number = np.empty(len(labels), dtype=np.int64)
    number[by_class] = np.arange(len(labels)) % FOLDS
    for fold in range(FOLDS):
        yield np.flatnonzero(number != fold), np.flatnonzero(number == fold)


def check_classes(labels: NDArray[np.int64], known: int = 0) -> None:
    """What cannot be asked is said before anything is trained; `known` is how many classes there are, 0 for unknown."""
    found = np.unique(labels)
    if len(found) < 2:
        raise InputError(
            f"all {len(labels)} images are of class {found[0]}: where there is one class only, no mask can tell it; "
            "take images of at least two classes"
        )
    if len(labels) < max(known, 2 * len(found), FOLDS):
        raise InputError(
            f"{len(labels)} images of {max(known, len(found))} classes: masks are read class by class, so the audit "
            f"needs at least two images per class and {FOLDS} in all; take {max(2 * known, 2 * len(found), FOLDS)} "
            "images or more"
        )


def _inputs(removed: Removed, side: int) -> Tensor:
    """`(n, 1, h, w)` in [−1, 1]; what is larger than `side` is averaged down."""
    height, width = (min(side, length) for length in removed.shape[-2:])
    pieces = (piece[:, None].float() * 2 - 1 for piece in torch.split(removed, 256))
    return torch.cat([adaptive_avg_pool2d(piece, (height, width)) for piece in pieces])


def _trained(
    inputs: Tensor,
    targets: Tensor,
    classes: int,
    reader: Reader,
    key: Key,
    on_epoch: Callable[[EpochRecord], object] | None,
) -> nn.Module:
    with key.fold("init").torch_rng():
        network = reader.make(classes)
    learned, held = split(len(inputs), reader.recipe, key)
    if len(learned) % reader.recipe.batch_size == 1 < len(learned):
        learned = learned[1:]  # a last batch of one mask has no variance to be normalized by

    def measure() -> float:
        return float((_told(network, inputs[held]).argmax(dim=1) == targets[held]).float().mean())

    batches = shuffled(inputs[learned], targets[learned], reader.recipe.batch_size, key)
    fit(network, batches, reader.recipe, key=key, measure=measure, on_epoch=on_epoch)
    return network


def _told(network: nn.Module, inputs: Tensor) -> Tensor:
    """Probabilities; in pieces, so that memory stays small."""
    network.eval()
    with torch.no_grad():
        return torch.cat([network(piece).softmax(dim=1) for piece in torch.split(inputs, 256)])
