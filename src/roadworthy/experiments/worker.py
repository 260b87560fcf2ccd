"""What computes items: an experiment with its images at hand."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from roadworthy.core.device import moved, sweep_device
from roadworthy.core.errors import DataError, InputError
from roadworthy.core.types import Batch, Dataset, Imputer
from roadworthy.datasets.blocks import BlockReader
from roadworthy.datasets.checks import check_batch
from roadworthy.evaluation.experiment import Experiment
from roadworthy.experiments.inputs import first_images
from roadworthy.experiments.items import Arrays, Block, Item, fingerprint_block
from roadworthy.imputers import Gain
from roadworthy.imputers.solvers.multigrid import compile_now
from roadworthy.models.prediction import fastest_device, predict
from roadworthy.training.gain import GainRecipe
from roadworthy.training.recipe import Recipe

Inputs = Mapping[str, Arrays]
"""Arrays of the items that are needed, by id."""
WholeImages = dict[tuple[int, ...], Tensor]
"""Probabilities of images as they are, by the ids of the batch that was predicted at once."""
Computed = Iterator[tuple[Item, Arrays]]


class Worker:
    """An experiment that is ready to compute; it keeps the block it read last."""

    def __init__(self, experiment: Experiment, verify: bool = False, predicted: WholeImages | None = None):
        """`verify`: compare every block with its fingerprint, because another process named it.

        `predicted`: what the rehearsal predicted with the same threads; the same batch gives the same bytes again.
        """
        compile_now(*first_images(experiment.data, 1).shape[-2:])  # once per machine; its time belongs to no item
        self.experiment, self.verify = experiment, verify
        self._predicted = predicted or {}
        self._data: dict[str, Dataset] = {"test": experiment.data}
        if experiment.train is not None:
            self._data["train"] = experiment.train
        self._readers = {split: BlockReader(data) for split, data in self._data.items()}
        self._last: dict[str, Batch] = {}
        self._with_units: dict[str, Batch] = {}
        self._placed: dict[str, tuple[Batch, Batch]] = {}

    def batch(self, block: Block) -> Batch:
        """The images of a block with their units, checked whenever they are read."""
        batch = self._readers[block.split].read(block.rows)
        if batch is not self._last.get(block.split):
            self._check(batch, block)
            self._with_units[block.split] = self.experiment.units(batch)  # may raise, so it comes first
            self._last[block.split] = batch
        return self._with_units[block.split]

    def placed(self, block: Block) -> Batch:
        """The images of a block where they are imputed: moved once, for all methods."""
        batch = self.batch(block)
        if batch is not self._placed.get(block.split, (None,))[0]:
            device = sweep_device(self.experiment.device)
            units = None if batch.units is None else batch.units.to(device)
            self._placed[block.split] = batch, replace(batch, images=moved(batch.images, device), units=units)
        return self._placed[block.split][1]

    def predict(self, batch: Batch, split: str) -> Tensor:
        """Probabilities of images as they are. Train images may have ids of test images, which alone were rehearsed."""
        known = self._predicted.get(tuple(batch.ids.tolist())) if split == "test" else None
        return predict(self.experiment.model, batch.images, self.experiment.device) if known is None else known

    def _check(self, batch: Batch, block: Block) -> None:
        check_batch(batch, self._data[block.split].ids[list(block.rows)])
        if self.verify and fingerprint_block(batch) != block.fingerprint:
            raise DataError(
                f"block {block.index} of the {block.split} images is not what the run started with: "
                "images, labels or ids changed, or differ between machines"
            )

    def train(self) -> Dataset:
        if self.experiment.train is None:
            raise InputError("train images are missing: an evaluator or imputer that trains needs them (train=)")
        return self.experiment.train

    def recipe(self) -> Recipe:
        if self.experiment.recipe is None:
            raise InputError("the recipe is missing: an evaluator that trains needs one (recipe=)")
        return self.experiment.recipe

    def imputer(self, name: str, item: Item, inputs: Inputs) -> Imputer:
        """The imputer `name`; if it was trained, from the arrays of its item."""
        return built_imputer(self.experiment.imputers[name], of_kind(item, "imputer"), inputs)


def built_imputer(imputer: Imputer | GainRecipe, trained: Sequence[Item], inputs: Inputs) -> Imputer:
    if not isinstance(imputer, GainRecipe):
        return imputer
    return trained_imputer(inputs[trained[0].id])


def trained_imputer(arrays: Arrays) -> Gain:
    return Gain.of({name: torch.from_numpy(np.array(array)) for name, array in arrays.items()}).to(fastest_device())


def of_kind(item: Item, kind: str, split: str | None = None) -> list[Item]:
    """What an item needs, of one kind and split."""
    return [need for need in item.needs if need.kind == kind and split in (None, need.label.get("split"))]


@contextmanager
def threads(count: int | None) -> Iterator[None]:
    """Torch computes with `count` threads inside the block."""
    before = torch.get_num_threads()
    if count is not None:
        torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def block_of(item: Item) -> Block:
    if item.block is None:
        raise InputError(f"an item of kind {item.kind!r} belongs to a block of images")
    return item.block
