"""The plain accuracy on a few images, before long work: a forgotten or doubled normalization shows in it."""

import warnings
from collections import Counter
from collections.abc import Callable

import torch
from scipy.stats import beta
from torch import Tensor

from roadworthy.attributions.baselines import has_mean
from roadworthy.core.errors import LowAccuracyWarning
from roadworthy.core.random import Key
from roadworthy.core.types import UNLABELED, Dataset, Images
from roadworthy.datasets import first
from roadworthy.datasets.subsets import First, RandomAccess, picked
from roadworthy.evaluation.experiment import Experiment
from roadworthy.experiments.worker import WholeImages
from roadworthy.models.prediction import predict

_IMAGES = 256
"""on which the accuracy is measured"""
_RETRIED = 64
"""of them, with other normalizations"""
_Values = float | tuple[float, ...]
_COMMON: dict[str, tuple[_Values, _Values]] = {
    "ImageNet's normalization": ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    "mean .5 and std .5": (0.5, 0.5),
}

_CAUSES = (
    "check its normalization, which may be forgotten or done twice (images are in [0, 1], "
    "rw.Normalized(network, mean, std) normalizes them), and that its classes have the order of the labels"
)


def check_accuracy(experiment: Experiment) -> WholeImages:
    """Warn if the plain accuracy shows that something is wrong with the model's inputs or the labels.

    Returns what was predicted, so that nobody predicts it again.
    """
    predicted: WholeImages = {}
    right, labels, classes = _right(experiment, _sample(experiment.data, _IMAGES), lambda images: images, predicted)
    if text := _complaint(experiment, right, labels, classes):
        warnings.warn(text, LowAccuracyWarning, stacklevel=4)
    return predicted


def _complaint(experiment: Experiment, right: list[bool], labels: list[int], classes: int) -> str:
    counts = Counter(labels)
    if len(counts) < 2:  # no labels, or a single class, whose accuracy says little about the model
        return ""
    hits, images, majority = sum(right), len(right), max(counts.values()) / len(right)
    measured = f"the model is right on {hits} of {images} images ({hits / images:.1%})"
    if hits < 0.9 * images and (better := _better_normalization(experiment)):
        return f"{measured}, {better}: its normalization seems to be forgotten or done twice"
    if suspicious(hits, images, 1 / classes, majority):
        return f"{measured}; chance is {1 / classes:.1%}, and the most frequent label has {majority:.1%}: {_CAUSES}"
    return ""


def suspicious(hits: int, images: int, chance: float, majority: float) -> bool:
    """An accuracy that is surely less than a quarter of the way from chance to 1, or less than half of what naming the
    most frequent label would give. With few images nothing is sure.

    >>> suspicious(0, 3, 0.1, 0.4), suspicious(25, 256, 0.1, 0.12), suspicious(140, 256, 0.1, 0.12)
    (False, True, False)
    """
    return bool(_at_most(hits, images) < max(chance + (1 - chance) / 4, majority / 2))


def _better_normalization(experiment: Experiment) -> str:
    """What would surely make the model better: no normalization if it has one, else a common one."""
    model, sample = experiment.model, _sample(experiment.data, _RETRIED)
    image = next(sample.batches(1)).images
    if has_mean(model, image):
        # The network sees the images as they are, so the normalization that the model shows is undone beforehand.
        others = {"without its normalization": lambda images: images * model.std.to(images) + model.mean.to(images)}
    else:
        fitting = {name: values for name, values in _COMMON.items() if image.shape[1] == 3 or "std .5" in name}
        others = {f"with {name}": _normalizing(*values) for name, values in fitting.items()}
    right, *_ = _right(experiment, sample, lambda images: images)
    for name, change in others.items():
        changed, *_ = _right(experiment, sample, change)
        if _at_least(sum(changed), len(changed)) > _at_most(sum(right), len(right)):
            return f"{name} on {sum(changed)} of {len(changed)} (as it is: {sum(right)})"
    return ""


def _normalizing(mean: _Values, std: _Values) -> Callable[[Images], Tensor]:
    shift, scale = (torch.tensor(values).reshape(-1, 1, 1) for values in (mean, std))
    return lambda images: (images - shift) / scale


def _right(
    experiment: Experiment, data: Dataset, change: Callable[[Images], Tensor], predicted: WholeImages | None = None
) -> tuple[list[bool], list[int], int]:
    """Whether the model is right on each labeled image after `change`; their labels; the number of its classes.

    Probabilities are put into `predicted`, if given.
    """
    right: list[bool] = []
    labels: list[int] = []
    classes = 0
    for batch in data.batches(experiment.batch_size):
        probabilities = predict(experiment.model, change(batch.images), experiment.device)
        if predicted is not None:
            predicted[tuple(batch.ids.tolist())] = probabilities
        known, classes = batch.labels != UNLABELED, probabilities.shape[1]
        right += (probabilities.argmax(dim=1) == batch.labels)[known].tolist()
        labels += batch.labels[known].tolist()
    return right, labels, classes


def _at_least(hits: int, images: int) -> float:
    """The accuracy, by a one-sided Clopper-Pearson bound of 99 %."""
    return float(beta.ppf(0.01, hits, images - hits + 1)) if hits else 0.0


def _at_most(hits: int, images: int) -> float:
    return float(beta.ppf(0.99, hits + 1, images - hits)) if hits < images else 1.0


def _sample(data: Dataset, count: int) -> Dataset:
    """Some images, at random where they can be read so: data sets are often sorted by class."""
    if not isinstance(data.data if isinstance(data, First) else data, RandomAccess):
        return first(data, count)
    return picked(data, sorted(Key(0).fold("accuracy").permutation(0, len(data))[:count].tolist()))
