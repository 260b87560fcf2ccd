"""Mask information (paper, section 4): how well do the masks alone predict the class?

A small network classifies the binary masks. Cross-fitting: every mask is classified once, by a network that was not
trained on it, so the result is an ordinary `Predictions`. `tables.mask_table` turns it into accuracy and bits.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import adaptive_avg_pool2d

from roadworthy.audit.reader import CURVE, FOLDS, partition
from roadworthy.core.errors import InputError
from roadworthy.core.random import Key
from roadworthy.core.results import Predictions
from roadworthy.core.types import Ids, Labels, Removed
from roadworthy.models import mask_cnn, resnet18
from roadworthy.training.loop import EpochRecord, fit, shuffled
from roadworthy.training.recipe import Recipe
from roadworthy.training.trainer import split

_MIN_TRAINED = 8
"""masks that a point of the learning curve needs; with fewer the majority class is predicted"""


@dataclass(frozen=True)
class MaskClassifier:
    """`make(classes)` gives a network with one input channel, `recipe` trains it."""

    make: Callable[[int], nn.Module]
    recipe: Recipe
    side: int
    """larger masks are averaged down to this many pixels per side"""


MASK_CLASSIFIERS: Mapping[str, MaskClassifier] = {
    "small": MaskClassifier(
        mask_cnn, Recipe(epochs=8, batch_size=64, lr=2e-3, weight_decay=1e-4, schedule="cosine", validation=0.15), 32
    ),
    # The paper's: a ResNet-18, trained as its image classifiers are.
    "resnet18": MaskClassifier(
        partial(resnet18, stem="imagenet", channels=1),
        Recipe(epochs=40, batch_size=32, lr=0.01, optimizer="sgd", schedule="step", milestones=(25,)),
        224,
    ),
}


def classify_masks(
    removed: Removed,
    labels: Labels,
    ids: Ids,
    key: Key,
    classifier: MaskClassifier,
    on_epoch: Callable[[EpochRecord], object] | None = None,
    every: int = 1,
) -> Predictions:
    """Predict the class of each image from its mask alone, with a network trained on the other folds.

    `every`: train on every 2nd or 4th of their masks only, for a learning curve.

    The best epoch is selected on a validation split of the training folds. Inputs are −1 and 1, so a mask and its
    complement carry the same information. Identical masks carry none: the majority class is predicted without training.
    """
    classes, targets = torch.unique(labels, return_inverse=True)
    shares = torch.bincount(targets) / len(targets)
    if bool((removed == removed[:1]).all()):
        probabilities = shares.expand(len(targets), -1)
    else:
        inputs = _inputs(removed, classifier.side)
        probabilities = torch.empty(len(targets), len(classes))
        for fold, (train, test) in enumerate(folds(targets.numpy(), key, every)):
            fold_key = key.fold("fold", fold)
            if len(train) < _MIN_TRAINED and every > 1:
                probabilities[test] = shares
                continue
            network = _trained(inputs[train], targets[train], len(classes), classifier, fold_key, on_epoch)
            probabilities[test] = _probabilities(network, inputs[test])
    return Predictions(
        ids=ids.numpy().astype(np.int64),
        labels=labels.numpy().astype(np.int64),
        predicted=classes[probabilities.argmax(dim=1)].numpy().astype(np.int64),
        probability=probabilities.gather(1, targets[:, None])[:, 0].numpy().astype(np.float32),
    )


def folds(labels: NDArray[np.int64], key: Key, every: int = 1) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """(training rows, test rows) of a stratified cross-validation: each row is tested once.

    Of the training rows every 2nd or 4th, stratified too, if `every` says so.
    """
    parts = partition(labels, key)
    for fold in range(FOLDS):
        train = (parts.fold != fold) & (parts.place % every == 0)
        yield np.flatnonzero(train), np.flatnonzero(parts.fold == fold)


def learning_curve(
    removed: Removed, labels: Labels, ids: Ids, key: Key, classifier: MaskClassifier
) -> list[Predictions]:
    """`classify_masks` trained on a quarter and on half of the masks; tested on all."""
    return [classify_masks(removed, labels, ids, key, classifier, every=step) for step in CURVE if step > 1]


def check_classes(labels: NDArray[np.int64], known: int = 0) -> None:
    """Raise an InputError if the labels do not allow a mask classifier; `known` classes exist, 0 if unknown."""
    present = np.unique(labels)
    if len(present) < 2:
        raise InputError(
            f"all {len(labels)} images are of class {present[0]}: with one class only, masks cannot leak the class; "
            "give images of at least two classes"
        )
    least = 2 * FOLDS
    if len(labels) < max(known, 2 * len(present), least):
        raise InputError(
            f"{len(labels)} images of {max(known, len(present))} classes: the audit is cross-validated, so it needs at "
            f"least two images per class and {least} in all; give {max(2 * known, 2 * len(present), least)} images or "
            "more"
        )


def _inputs(removed: Removed, side: int) -> Tensor:
    """`(n, 1, h, w)` in [−1, 1], averaged down to at most `side` pixels per side."""
    height, width = (min(side, length) for length in removed.shape[-2:])
    pieces = (piece[:, None].float() * 2 - 1 for piece in torch.split(removed, 256))
    return torch.cat([adaptive_avg_pool2d(piece, (height, width)) for piece in pieces])


def _trained(
    inputs: Tensor,
    targets: Tensor,
    classes: int,
    classifier: MaskClassifier,
    key: Key,
    on_epoch: Callable[[EpochRecord], object] | None,
) -> nn.Module:
    with key.fold("init").torch_rng():
        network = classifier.make(classes)
    train, validation = split(len(inputs), classifier.recipe, key)
    if len(train) % classifier.recipe.batch_size == 1 < len(train):
        train = train[1:]  # batch normalization cannot normalize a last batch of one mask

    def measure() -> float:
        predicted = _probabilities(network, inputs[validation]).argmax(dim=1)
        return float((predicted == targets[validation]).float().mean())

    batches = shuffled(inputs[train], targets[train], classifier.recipe.batch_size, key)
    fit(network, batches, classifier.recipe, key=key, measure=measure, on_epoch=on_epoch)
    return network


def _probabilities(network: nn.Module, inputs: Tensor) -> Tensor:
    """Computed in pieces to limit memory."""
    network.eval()
    with torch.no_grad():
        return torch.cat([network(piece).softmax(dim=1) for piece in torch.split(inputs, 256)])
