"""A linear reader: predicts the class from features, each row by a reader that was not fitted on it.

Ridge regression of class indicators, in closed form. So the same reader can be fitted to permuted labels at little
cost, and the test of "no information" is exact. An ordinary binomial test is not: the readers of two folds share
training rows, and by chance they are right or wrong together.
"""

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from roadworthy.core.random import Key

FOLDS = 5
CURVE = (4, 2, 1)
"""The learning curve: a reader is fitted to every 4th, every 2nd and every training row."""
RIDGE = 2000.0
"""penalty, for standardized features; from 300 to 3,000 it changes accuracies on CIFAR-10 by a point or two"""
PERMUTATIONS = 99
_COLUMNS = 1024
"""class indicators that are solved for at once, which limits memory"""


class Partition(NamedTuple):
    """Folds with equal shares of every class, per row `(n,)`."""

    fold: NDArray[np.int64]
    place: NDArray[np.int64]
    """within fold and class, at random: rows with `place % 4 == 0` are a stratified quarter"""


class Reading(NamedTuple):
    """What a cross-fitted reader predicts."""

    labels: NDArray[np.int64]
    predicted: NDArray[np.int64]
    """`(3, n)`: fitted to a quarter, half and all of the training rows"""
    null: NDArray[np.int64]
    """`(99,)`: correct predictions after the labels were permuted, the same permutations for all readings of a key"""


def partition(labels: NDArray[np.int64], key: Key) -> Partition:
    """Without stratification a class frequent in training is rare in testing, and guessing falls below chance."""
    mixed = key.fold("folds").permutation(0, len(labels))
    by_class = mixed[np.argsort(labels[mixed], kind="stable")]
    fold, place = np.empty_like(labels), np.empty_like(labels)
    fold[by_class] = np.arange(len(labels)) % FOLDS
    place[by_class] = np.arange(len(labels)) // FOLDS
    return Partition(fold, place)


def others(labels: NDArray[np.int64], parts: Partition, key: Key) -> NDArray[np.int64]:
    """For each row another row of the same fold, whose class is independent of its own.

    A permutation of the fold. A row that would get itself gets another row of its class, as otherwise the other class
    would be slightly more likely in a small fold; if there is none, any other row.
    """
    partner = np.empty_like(labels)
    for fold in range(FOLDS):
        rows = np.flatnonzero(parts.fold == fold)
        drawn = rows[key.fold("others").permutation(fold, len(rows))]
        for place in np.flatnonzero(drawn == rows):
            rest = np.delete(rows, place)
            same = rest[labels[rest] == labels[rows[place]]]
            choice = same if len(same) else rest
            drawn[place] = choice[key.fold("instead", fold).permutation(int(place), len(choice))[0]]
        partner[rows] = drawn
    return partner


def read(features: Sequence[Tensor], labels: NDArray[np.int64], parts: Partition, key: Key) -> Reading:
    """Predict the class of each row of `features[0]`, `(n, d)`, by readers fitted to the other folds.

    The other tensors are further features of the same rows, for fitting only.
    """
    classes, targets = np.unique(labels, return_inverse=True)
    shuffled = np.stack([_permuted(targets, parts, key.fold("permutation", draw)) for draw in range(PERMUTATIONS)])
    predicted, null = np.empty((len(CURVE), len(labels)), dtype=np.int64), np.zeros(PERMUTATIONS, dtype=np.int64)
    rounds = _standardized(features)
    mean, grams = torch.stack(rounds).mean(dim=0), _grams(rounds, parts)
    for fold in range(FOLDS):
        test = np.flatnonzero(parts.fold == fold)
        for size, step in enumerate(CURVE):
            train = np.flatnonzero((parts.fold != fold) & (parts.place % step == 0))
            gram = grams[np.arange(FOLDS) != fold, : size + 1].sum(dim=(0, 1))
            weights = _weights(gram, rounds[0][test], mean[train])
            predicted[size, test] = classes[_predicted(weights, targets[None, train], len(classes))[0]]
        null += (_predicted(weights, shuffled[:, train], len(classes)) == shuffled[:, test]).sum(axis=1)
    return Reading(labels, predicted, null)


def _permuted(targets: NDArray[np.int64], parts: Partition, key: Key) -> NDArray[np.int64]:
    """Labels permuted within each fold, so that folds stay stratified."""
    permuted = targets.copy()
    for fold in range(FOLDS):
        rows = np.flatnonzero(parts.fold == fold)
        permuted[rows] = targets[rows[key.permutation(fold, len(rows))]]
    return permuted


def _standardized(features: Sequence[Tensor]) -> list[Tensor]:
    """Without labels, so test rows may take part."""
    rows = torch.cat(list(features)).double()
    mean, deviation = rows.mean(dim=0), rows.std(dim=0, correction=0)
    scale = torch.where(deviation > 1e-6 * (1 + mean.abs()), 1 / deviation.clamp(min=1e-12), 0.0)
    return [((part.double() - mean) * scale).float() for part in features]


def _grams(rounds: Sequence[Tensor], parts: Partition) -> Tensor:
    """`(folds, sizes, d, d)`: per fold, of the rows that each size of the learning curve adds to the smaller ones."""
    added = np.argmax(np.stack([parts.place % step == 0 for step in CURVE]), axis=0)
    grams = []
    for fold, size in product(range(FOLDS), range(len(CURVE))):
        rows = torch.cat([part[(parts.fold == fold) & (added == size)] for part in rounds])
        grams.append(rows.T @ rows / len(rounds))
    return torch.stack(grams).reshape(FOLDS, len(CURVE), *grams[0].shape)


def _weights(gram: Tensor, test: Tensor, train: Tensor) -> Tensor:
    """`(test rows, training rows)`: predictions are these weights times the training rows' centered indicators."""
    penalized = gram + RIDGE * torch.eye(len(gram))
    return torch.cholesky_solve(test.T, torch.linalg.cholesky(penalized)).T @ train.T


def _predicted(weights: Tensor, targets: NDArray[np.int64], classes: int) -> NDArray[np.int64]:
    """Classes `(labelings, test rows)` for each labeling `(labelings, training rows)` of the training rows."""
    predicted = []
    for piece in np.array_split(targets, min(len(targets), -(-len(targets) * classes // _COLUMNS))):
        indicators = torch.nn.functional.one_hot(torch.from_numpy(piece), classes).float()
        shares = indicators.mean(dim=1, keepdim=True)
        columns = (indicators - shares).permute(1, 0, 2).flatten(1)
        scores = (weights @ columns).reshape(len(weights), *shares[:, 0].shape) + shares[:, 0]
        predicted.append(scores.argmax(dim=2).T.numpy())
    return np.concatenate(predicted)
