"""Do everything once on the first images, so that what cannot work is reported before long work starts."""

import warnings
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from itertools import product

from scipy.stats import beta

from roadworthy.attributions import PrecomputedMaps
from roadworthy.attributions.maps import as_maps
from roadworthy.core.errors import LowAccuracyWarning, NotLogitsWarning
from roadworthy.core.random import Key
from roadworthy.core.types import UNLABELED, Dataset
from roadworthy.datasets import first
from roadworthy.datasets.subsets import First, RandomAccess, picked
from roadworthy.evaluation.experiment import Experiment
from roadworthy.evaluation.no_retrain import NoRetrain
from roadworthy.evaluation.orders import rank
from roadworthy.evaluation.sweep import explain, imputed
from roadworthy.models.prediction import eval_mode, predict, with_labels
from roadworthy.training.gain import GainRecipe

_CHECKED = 256
"""images on which the plain accuracy is measured"""


def rehearse(experiment: Experiment, fractions: Iterable[float], seed: int, images: int = 2) -> None:
    """Explain a few images with every method; remove, impute and predict with every order and imputer."""
    for name, method in experiment.methods.items():
        if isinstance(method, PrecomputedMaps):
            _check_maps(name, method, experiment)
    with eval_mode(experiment.model, experiment.device):
        _check_outputs(experiment)
        batch = next(experiment.data.batches(min(images, len(experiment.data))))
        probabilities = predict(experiment.model, batch.images, experiment.device)
        batch = with_labels(batch, probabilities)
        if experiment.target == "prediction":
            batch = replace(batch, labels=probabilities.argmax(dim=1))
        maps = explain(experiment.methods, experiment.model, batch, experiment.map_key, experiment.channel_reduction)
        evaluator, key = NoRetrain(experiment.model, experiment.device), Key(seed)
        ranks = rank(experiment.orders, next(iter(maps.values())), batch.ids, key)
        for order, imputer in product(experiment.orders, experiment.imputers.values()):
            if not isinstance(imputer, GainRecipe):
                for removed, filled in imputed(imputer, batch, ranks[order], [max(fractions)], key):
                    evaluator(filled, removed)
        _check_accuracy(experiment)


def _check_outputs(experiment: Experiment) -> None:
    kind = experiment.model.outputs
    if kind != "logits":
        warnings.warn(
            f"the model returns {kind}: its predictions are taken as they are, but gradient methods explain {kind}, "
            "not logits, and find less: give a model that returns logits, without its last softmax",
            NotLogitsWarning,
            stacklevel=4,
        )


def _check_accuracy(experiment: Experiment) -> None:
    """Warn if the plain accuracy shows that something is wrong with the model's inputs or the labels."""
    hits, counts = 0, Counter[int]()
    for batch in _sample(experiment.data).batches(experiment.batch_size):
        probabilities = predict(experiment.model, batch.images, experiment.device)
        hits += int((probabilities.argmax(dim=1) == batch.labels).sum())
        counts.update(batch.labels[batch.labels != UNLABELED].tolist())
    if len(counts) < 2:  # no labels, or a single class, whose accuracy says little about the model
        return
    images, chance = counts.total(), 1 / probabilities.shape[1]
    majority = max(counts.values()) / images
    if suspicious(hits, images, chance, majority):
        warnings.warn(
            f"the model is right on {hits} of {images} images ({hits / images:.1%}); chance is {chance:.1%}, and the "
            f"most frequent label has {majority:.1%}: check its normalization, which may be forgotten or done twice "
            "(images are in [0, 1], rw.Normalized(network, mean, std) normalizes them), and that its classes have the "
            "order of the labels",
            LowAccuracyWarning,
            stacklevel=4,
        )


def suspicious(hits: int, images: int, chance: float, majority: float) -> bool:
    """An accuracy that is not shown to be above chance and surely less than half way to 1, or surely below half of
    what naming the most frequent label would give. With few images nothing is sure.

    >>> suspicious(0, 3, 0.1, 0.4), suspicious(25, 256, 0.1, 0.12), suspicious(140, 256, 0.1, 0.12)
    (False, True, False)
    """
    low = beta.ppf(0.05, hits, images - hits + 1) if hits else 0.0  # one-sided Clopper-Pearson bounds
    high = beta.ppf(0.99, hits + 1, images - hits) if hits < images else 1.0
    return bool((low <= chance and high < (1 + chance) / 2) or high < majority / 2)


def _sample(data: Dataset) -> Dataset:
    """Some images, at random where they can be read so: data sets are often sorted by class."""
    if not isinstance(data.data if isinstance(data, First) else data, RandomAccess):
        return first(data, _CHECKED)
    return picked(data, sorted(Key(0).fold("accuracy").permutation(0, len(data))[:_CHECKED].tolist()))


def _check_maps(name: str, method: PrecomputedMaps, experiment: Experiment) -> None:
    """Precomputed maps exist already: all of them are checked before the first is used."""
    (image,) = next(experiment.data.batches(1)).images
    for start in range(0, len(experiment.data), 256):
        ids = experiment.data.ids[start : start + 256]
        as_maps(name, method.rows(ids), ids, image.expand(len(ids), *image.shape), experiment.channel_reduction)
