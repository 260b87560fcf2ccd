"""Judges that train. `Retrain` (ROAR, KAR) trains a fresh model for every point; `FineTuned` tunes the given one once.

Train images are filled as they are learned from: the masks are those of the point, the noise is fresh in every epoch but
keyed. Initialization, order of batches and validation split depend on the seed alone, so points are paired.
"""

import hashlib
import warnings
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, final

import torch
from torch.nn.functional import cross_entropy

from roadworthy.core.errors import (
    InputError,
    ModelError,
    RangeError,
    SameStartWarning,
    ShapeError,
    TrainingError,
    TrainTestOverlapWarning,
)
from roadworthy.core.masks import at_random_shares, removed_at, scattered
from roadworthy.core.random import Key
from roadworthy.core.types import UNLABELED, Batch, Dataset, Ids, Imputer, Maps, Removal, Removed
from roadworthy.models.normalized import Normalized, as_model
from roadworthy.training.checkpoints import CheckpointFile
from roadworthy.training.loop import EpochRecord, Loss
from roadworthy.training.recipe import RECIPES as RECIPES
from roadworthy.training.recipe import Recipe
from roadworthy.training.trainer import Augment, Filled, Trainer, TrainingResult, readable


@final
@dataclass(frozen=True, eq=False)
class Mapped:
    """A split and the maps of one method on it: `maps` `(n, h, w)`, in the order of `data`."""

    data: Dataset
    maps: Maps

    def __post_init__(self) -> None:
        if len(self.maps) != len(self.data):
            raise ShapeError(f"{len(self.maps)} maps for {len(self.data)} images: retraining needs one for each")


@final
@dataclass(frozen=True, eq=False)
class Retrain:
    """Retraining (ROAR for MoRF, KAR for LeRF): each point is evaluated by a new model that learned from images like it.

    `train` holds the maps of the method that is evaluated. `factory()` makes a fresh network. `augment` comes after the
    filling. `test` is looked at by `select="best-on-test"` alone. A point is trained once and kept; with `checkpoint`,
    a file for one point, an interrupted training goes on after its last whole epoch.
    """

    recipe: Recipe
    train: Mapped
    factory: Callable[[], Any]
    _: KW_ONLY
    test: Mapped | None = None
    loss: Loss = cross_entropy
    augment: Augment | None = None
    checkpoint: Path | None = None
    device: torch.device | str = "cpu"
    on_epoch: Callable[[EpochRecord], object] | None = None
    _kept: dict[Any, tuple[Removal, TrainingResult]] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        check_labeled(self.train.data)
        check_factory(self.factory)
        if self.recipe.select == "best-on-test" and self.test is None:
            raise InputError('select="best-on-test" needs test=Mapped(data, maps): the images it is best on')

    def model_for(self, removal: Removal, fraction: float, key: Key) -> Normalized:
        return self.trained(removal, fraction, key).model

    def trained(self, removal: Removal, fraction: float, key: Key) -> TrainingResult:
        """The point's model with its training curve."""
        name = (id(removal.order), id(removal.imputer), fraction, key)
        if name not in self._kept:
            self._kept[name] = removal, self._train(removal, fraction, key)  # the removal lives on, so do its ids
        return self._kept[name][1]

    def _train(self, removal: Removal, fraction: float, key: Key) -> TrainingResult:
        data = readable(self.train.data)
        removed = removed_at(removal.order(self.train.maps, data.ids, key.fold("train")), fraction)
        own = key.fold("retrain")
        with own.fold("init").torch_rng():
            model = as_model(self.factory()).to(self.device)
        trainer = Trainer(
            self.recipe,
            data,
            lambda batch, rows, now: removal.imputer(batch, removed[rows], now),
            own,
            self.loss,
            self.augment,
            partial(_imputed, self.test, removal, fraction, key) if self.test else None,
            _checkpoint(self.checkpoint, self.recipe, fraction, own),
            self.on_epoch,
        )
        return _trained(trainer, model, f"fraction {fraction:g}, seed {key.seed}")


@final
@dataclass(frozen=True, eq=False)
class FineTuned:
    """A third evaluator at a fraction of the cost: the given model, tuned once on randomly masked and filled images.

    No mask of an explanation is ever learned (arXiv:2410.02970, 2407.11910). Each image loses a random share of its
    pixels, up to `largest`, anew in every epoch. One tuning per imputer and seed serves all points.
    """

    recipe: Recipe
    train: Dataset
    model: Normalized
    _: KW_ONLY
    largest: float = 0.9
    loss: Loss = cross_entropy
    augment: Augment | None = None
    checkpoint: Path | None = None
    on_epoch: Callable[[EpochRecord], object] | None = None
    _kept: dict[Any, tuple[Imputer, TrainingResult]] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        check_labeled(self.train)
        if not 0 < self.largest < 1:
            raise RangeError(f"largest={self.largest}: the largest share of pixels to mask lies above 0 and below 1")
        if self.recipe.select == "best-on-test":
            raise InputError('select="best-on-test" is for retraining: a tuned model evaluators all points')

    def model_for(self, removal: Removal, fraction: float, key: Key) -> Normalized:
        return self.tuned(removal.imputer, key).model

    def tuned(self, imputer: Imputer, key: Key) -> TrainingResult:
        name = (id(imputer), key)
        if name not in self._kept:
            own = key.fold("fine-tuned")

            def filled(batch: Batch, rows: Ids, now: Key) -> torch.Tensor:
                return imputer(batch, random_masks(batch, self.largest, now), now)

            checkpoint = _checkpoint(self.checkpoint, self.recipe, self.largest, own)
            trainer = Trainer(
                self.recipe, readable(self.train), filled, own, self.loss, self.augment, None, checkpoint, self.on_epoch
            )
            self._kept[name] = imputer, _trained(trainer, deepcopy(self.model), f"random masks, seed {key.seed}")
        return self._kept[name][1]


def random_masks(batch: Batch, largest: float, key: Key) -> Removed:
    """Random pixels of each image, a random share of them below `largest`; both depend on key and id alone."""
    height, width = batch.images.shape[-2:]
    ranks = scattered(batch.ids, (height, width), key.fold("masks"))
    return at_random_shares(ranks, batch.ids, largest, key)


def _imputed(test: Mapped, removal: Removal, fraction: float, key: Key) -> Filled:
    start = 0
    for batch in test.data.batches(256):
        ranks = removal.order(test.maps[start : start + len(batch)], batch.ids, key)
        yield removal.imputer(batch, removed_at(ranks, fraction), key), batch.labels
        start += len(batch)


def _trained(trainer: Trainer, model: Normalized, point: str) -> TrainingResult:
    try:
        return trainer.train(model)
    except ModelError as error:
        raise TrainingError(f"the training for {point} failed: {error}") from error


def _checkpoint(path: Path | None, recipe: Recipe, fraction: float, key: Key) -> CheckpointFile | None:
    return CheckpointFile(path, f"{recipe} {fraction} {key}") if path else None


# ── before the first epoch ───────────────────────────────────────────────────────────────────────────────────────────


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
        raise InputError("the train split holds images without a label: a evaluator that trains needs one for each")


def check_splits(train: Dataset, test: Dataset) -> None:
    """Every class that is tested is learned; an image that is learned and tested is said."""
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
            f"{both}: retraining learns them by heart; take another split", TrainTestOverlapWarning, stacklevel=2
        )


def check_apart(train: Dataset, test: Dataset) -> None:
    """An imputer that has seen the images which it is to fill would know what was removed."""
    if both := _in_both(_labels_and_images(train), _labels_and_images(test)):
        raise InputError(f"{both}: an imputer must not learn from what it will fill; take another split in [train]")


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
