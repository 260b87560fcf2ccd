"""Evaluators that train: a model for every point, from scratch (ROAR, KAR) or further, or one fine-tuned once.

Train images are imputed as they are needed. Masks are those of the point; noise is fresh in every epoch but keyed.
Initialization, order of batches and validation split depend on the seed alone, so points are paired.
"""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Any, final

import torch
from torch.nn.functional import cross_entropy

from roadworthy.core.errors import InputError, ModelError, RangeError, ShapeError, TrainingError
from roadworthy.core.masks import at_random_shares, removed_at, scattered
from roadworthy.core.random import Key
from roadworthy.core.types import Batch, Dataset, Ids, Images, Imputer, Maps, Order, Removed
from roadworthy.datasets.subsets import spans
from roadworthy.evaluation.checks import check_factory, check_labeled
from roadworthy.evaluation.orders import rank
from roadworthy.evaluation.sweep import filled
from roadworthy.evaluation.units import PIXELS, UnitSetting
from roadworthy.models.normalized import Normalized, as_model
from roadworthy.training.checkpoints import CheckpointFile
from roadworthy.training.loop import EpochRecord, Loss
from roadworthy.training.recipe import Recipe
from roadworthy.training.trainer import Augment, Filled, Trainer, TrainingResult, readable


@final
@dataclass(frozen=True, eq=False)
class Mapped:
    """A split and the maps `(n, h, w)` of one method on it, in the order of `data`."""

    data: Dataset
    maps: Maps

    def __post_init__(self) -> None:
        if len(self.maps) != len(self.data):
            raise ShapeError(f"{len(self.maps)} maps for {len(self.data)} images: retraining needs one for each")


@final
@dataclass(frozen=True, eq=False)
class Retrain:
    """A new model for every point, trained on images like it: ROAR for MoRF, KAR for LeRF.

    `train` holds the maps of the method under evaluation. `network()` makes a fresh network; with `start` instead, a
    copy of that model is trained further (a warm start). `augment` is applied after imputation. `test` is read by
    `select="best-on-test"` alone. With `checkpoint`, a file for one point, an interrupted training resumes after its
    last complete epoch.
    """

    recipe: Recipe
    train: Mapped
    network: Callable[[], Any] | None = None
    _: KW_ONLY
    start: Normalized | None = None
    test: Mapped | None = None
    loss: Loss = cross_entropy
    augment: Augment | None = None
    checkpoint: Path | None = None
    device: torch.device | str = "cpu"
    units: UnitSetting = PIXELS
    """what is removed at a time"""
    on_epoch: Callable[[EpochRecord], object] | None = None

    def __post_init__(self) -> None:
        check_labeled(self.train.data)
        if (self.network is None) == (self.start is None):
            raise InputError("retraining needs network=, a function that makes new networks, or start=, a model")
        if self.network is not None:
            check_factory(self.network)
        if self.recipe.select == "best-on-test" and self.test is None:
            raise InputError('select="best-on-test" needs test=Mapped(data, maps): the images it is best on')

    def fit(self, order: Order, imputer: Imputer, fraction: float, key: Key) -> TrainingResult:
        data = readable(self.train.data)
        removed = self._removed(data, order, fraction, key.fold("train"))
        point_key = key.fold("retrained")

        def impute(batch: Batch, rows: Ids, now: Key) -> Images:
            return filled(imputer, batch, removed[rows], now)

        def imputed_test() -> Filled:
            if self.test is None:
                return
            for span, batch in zip(spans(len(self.test.data), 256), self.test.data.batches(256), strict=True):
                mask = _mask(order, self.test.maps[span], self.units(batch), fraction, key)
                yield filled(imputer, batch, mask, key), batch.labels

        trainer = Trainer(
            self.recipe,
            data,
            impute,
            point_key,
            self.loss,
            self.augment,
            imputed_test if self.test else None,
            _checkpoint(self.checkpoint, self.recipe, fraction, point_key),
            self.on_epoch,
        )
        return _fitted(trainer, self._begin(point_key.fold("init")), f"fraction {fraction:g}, seed {key.seed}")

    def _removed(self, data: Dataset, order: Order, fraction: float, key: Key) -> Removed:
        """The mask of every train image; images are read only if their units need them."""
        if self.units.pixels:
            return removed_at(order(self.train.maps, data.ids, key), fraction)
        batches = zip(spans(len(data), 256), data.batches(256), strict=True)
        return torch.cat(
            [_mask(order, self.train.maps[span], self.units(batch), fraction, key) for span, batch in batches]
        )

    def _begin(self, key: Key) -> Normalized:
        if self.network is None:
            return deepcopy(self.start).to(self.device)  # type: ignore[union-attr]
        with key.torch_rng():
            return as_model(self.network()).to(self.device)


@final
@dataclass(frozen=True, eq=False)
class FineTuned:
    """The given model, fine-tuned once on randomly masked and imputed images (arXiv:2410.02970, arXiv:2407.11910).

    It never sees a mask of an explanation. Each image loses a random fraction of its pixels, up to `largest`, anew in
    every epoch. One fine-tuning per imputer and seed serves all points.
    """

    recipe: Recipe
    train: Dataset
    model: Normalized
    _: KW_ONLY
    largest: float = 0.9
    loss: Loss = cross_entropy
    augment: Augment | None = None
    checkpoint: Path | None = None
    units: UnitSetting = PIXELS
    on_epoch: Callable[[EpochRecord], object] | None = None

    def __post_init__(self) -> None:
        check_labeled(self.train)
        if not 0 < self.largest < 1:
            raise RangeError(f"largest={self.largest}: the largest fraction to mask must lie between 0 and 1")
        if self.recipe.select == "best-on-test":
            raise InputError('select="best-on-test" is for retraining: a fine-tuned model evaluates all points')

    def fit(self, imputer: Imputer, key: Key) -> TrainingResult:
        model_key = key.fold("mask-tuned")

        def impute(batch: Batch, rows: Ids, now: Key) -> Images:
            return imputer(batch, random_masks(self.units(batch), self.largest, now), now)

        trainer = Trainer(
            self.recipe,
            readable(self.train),
            impute,
            model_key,
            self.loss,
            self.augment,
            None,
            _checkpoint(self.checkpoint, self.recipe, self.largest, model_key),
            self.on_epoch,
        )
        return _fitted(trainer, deepcopy(self.model), f"random masks, seed {key.seed}")


def random_masks(batch: Batch, largest: float, key: Key) -> Removed:
    """A random fraction below `largest` of each image's pixels, or units; both depend on key and id alone."""
    height, width = batch.images.shape[-2:]
    ranks = scattered(batch.ids, (height, width), key.fold("masks"), batch.units)
    return at_random_shares(ranks, batch.ids, largest, key, batch.units)


def _mask(order: Order, maps: Maps, batch: Batch, fraction: float, key: Key) -> Removed:
    return removed_at(rank({"": order}, maps, batch.ids, key, batch.units)[""], fraction, batch.units)


def _fitted(trainer: Trainer, model: Normalized, point: str) -> TrainingResult:
    try:
        return trainer.train(model)
    except ModelError as error:
        raise TrainingError(f"the training for {point} failed: {error}") from error


def _checkpoint(path: Path | None, recipe: Recipe, fraction: float, key: Key) -> CheckpointFile | None:
    return CheckpointFile(path, f"{recipe} {fraction} {key}") if path else None
