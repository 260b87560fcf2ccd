"""Do everything once on the first images, so that what cannot work is reported before long work starts."""

import warnings
from collections.abc import Iterable
from dataclasses import replace
from itertools import product
from typing import NamedTuple

from roadworthy.attributions import PrecomputedMaps
from roadworthy.attributions.maps import as_maps
from roadworthy.core import errors
from roadworthy.core.device import sweep_device
from roadworthy.core.errors import NotLogitsWarning
from roadworthy.core.random import Key
from roadworthy.evaluation.experiment import Experiment
from roadworthy.evaluation.orders import rank
from roadworthy.evaluation.part_checks import check_imputed, check_probabilities, check_ranks, check_stable
from roadworthy.evaluation.sweep import explain, imputed
from roadworthy.evaluation.token_removal import check_token_removal, evaluator_of
from roadworthy.experiments.accuracy_check import check_accuracy
from roadworthy.experiments.worker import WholeImages
from roadworthy.models.prediction import eval_mode, predict, with_labels
from roadworthy.training.gain import GainRecipe

REHEARSAL = "trying everything on two images"
"""What this stage is called; the first time on a machine, it also compiles the solver."""


class Rehearsed(NamedTuple):
    noted: list[str]
    """our own warnings, so that they can stand in the results too: on a terminal they are soon lost"""
    predicted: WholeImages


def rehearse(experiment: Experiment, fractions: Iterable[float], seed: int, images: int = 2) -> Rehearsed:
    """Explain a few images with every method; remove, impute and predict with every order and imputer."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        predicted = _rehearse(experiment, fractions, seed, images)
    for warning in caught:
        warnings.warn(warning.message, warning.category, stacklevel=3)
    own = [str(warning.message) for warning in caught if warning.category.__module__ == errors.__name__]
    return Rehearsed(list(dict.fromkeys(own)), predicted)


def _rehearse(experiment: Experiment, fractions: Iterable[float], seed: int, images: int) -> WholeImages:
    for name, method in experiment.methods.items():
        if isinstance(method, PrecomputedMaps):
            _check_maps(name, method, experiment)
    with eval_mode(experiment.model, experiment.device):
        _check_outputs(experiment)
        batch = next(experiment.data.batches(min(images, len(experiment.data))))
        check_token_removal(experiment.model, experiment.imputers.values(), experiment.units(batch), fractions)
        probabilities = predict(experiment.model, batch.images, experiment.device)
        check_stable(experiment.model, batch, experiment.device)
        batch = with_labels(batch, probabilities)
        batch = experiment.units(batch)
        if experiment.target == "prediction":
            batch = replace(batch, labels=probabilities.argmax(dim=1))
        maps = explain(experiment.methods, experiment.model, batch, experiment.map_key, experiment.channel_reduction)
        key = Key(seed)
        device = sweep_device(experiment.device)
        batch, relevance = batch.to(device), next(iter(maps.values())).to(device)
        ranks = rank(experiment.orders, relevance, batch.ids, key, batch.units)
        for order in experiment.orders:
            check_ranks(order, ranks[order], batch)
        for order, (name, imputer) in product(experiment.orders, experiment.imputers.items()):
            if not isinstance(imputer, GainRecipe):
                evaluator = evaluator_of(experiment.model, imputer, experiment.device)
                for removed, filled in imputed(imputer, batch, ranks[order], [max(fractions)], key):
                    check_imputed(name, batch, removed, filled)
                    check_probabilities(evaluator(filled, removed))
        return check_accuracy(experiment)


def _check_outputs(experiment: Experiment) -> None:
    kind = experiment.model.outputs
    if kind != "logits":
        warnings.warn(
            f"the model returns {kind}: its predictions are taken as they are, but gradient methods explain {kind}, "
            "not logits, and find less: give a model that returns logits, without its last softmax",
            NotLogitsWarning,
            stacklevel=4,
        )


def _check_maps(name: str, method: PrecomputedMaps, experiment: Experiment) -> None:
    """Precomputed maps exist already: all of them are checked before the first is used."""
    first = experiment.units(next(experiment.data.batches(1)))
    (image,) = first.images
    for start in range(0, len(experiment.data), 256):
        ids = experiment.data.ids[start : start + 256]
        images = image.expand(len(ids), *image.shape)
        as_maps(name, method.merged(ids, images), ids, images, experiment.channel_reduction, first.units)
