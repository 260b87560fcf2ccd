"""An experiment with its store: where a comparison gets maps, images and audit items from."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch

from roadworthy.core.errors import DataError
from roadworthy.core.types import UNLABELED, Batch, Dataset, Imputer, Order
from roadworthy.datasets.subsets import picked
from roadworthy.evaluation.experiment import Experiment
from roadworthy.evaluation.units import PIXELS, UnitSetting
from roadworthy.experiments.design import Design
from roadworthy.experiments.items import fingerprint_block
from roadworthy.experiments.pending import Survey, survey
from roadworthy.experiments.recorded import as_predictions
from roadworthy.experiments.results import maps_of
from roadworthy.experiments.stores import Store
from roadworthy.experiments.worker import built_imputer
from roadworthy.training.gain import GainRecipe


class Parts(NamedTuple):
    """What pictures need of an experiment: neither its model nor its methods."""

    data: Dataset
    orders: Mapping[str, Order]
    imputers: Mapping[str, Imputer | GainRecipe]
    left_out: tuple[str, ...] = ()
    """imputers that are code of the plan"""
    units: UnitSetting = PIXELS


@dataclass(frozen=True, eq=False)
class Source:
    design: Design
    store: Store
    build: Callable[[], Experiment]
    """raises where data or weights are not at hand"""
    check: Callable[[Experiment], None] | None = None
    """raises where weights or code changed since the run; None if the experiment is the one that ran"""
    build_parts: Callable[[], Parts] | None = None
    """what pictures need, built without running code of a plan; None takes it from the experiment"""

    @cached_property
    def state(self) -> Survey:
        return survey(self.design, self.store)

    @cached_property
    def experiment(self) -> Experiment:
        return self.build()

    @cached_property
    def parts(self) -> Parts:
        if self.build_parts is not None:
            return self.build_parts()
        experiment = self.experiment
        return Parts(experiment.data, experiment.orders, experiment.imputers, units=experiment.units)

    @property
    def rows(self) -> list[int]:
        """Of the images that were evaluated."""
        return sorted(row for block in self.state.blocks for row in block.rows)

    def images(self, rows: Sequence[int]) -> tuple[Batch, list[bool]]:
        """Some images as they were evaluated, with known labels, and whether a label is the model's prediction."""
        batch = next(picked(self.parts.data, list(rows)).batches(len(rows)))
        known: dict[int, tuple[int, int]] = {}
        for block in self.state.blocks:
            if set(rows) & set(block.rows):
                baseline = as_predictions(self.store.read(self.design.baseline(block)))
                known |= dict(zip(block.rows, zip(baseline.ids, baseline.labels, strict=True), strict=True))
        if [int(known[row][0]) for row in rows] != batch.ids.tolist():
            raise DataError("the images at hand are not those that were evaluated: their ids differ")
        labels = torch.tensor([int(known[row][1]) for row in rows])
        return self.parts.units(Batch(batch.ids, batch.images, labels)), (batch.labels == UNLABELED).tolist()

    def check_images(self, blocks: int | None = 1) -> None:
        """The images of the first blocks, or of all, are those that were evaluated."""
        if self.check is None:
            return
        for block in self.state.blocks[:blocks]:
            batch = next(picked(self.parts.data, list(block.rows)).batches(len(block.rows)))
            if fingerprint_block(batch) != block.fingerprint:
                raise DataError("the images at hand are not those that were evaluated: their fingerprint differs")

    def check_all(self) -> None:
        """Before items are added: everything is as it was when the others were computed."""
        if self.check is not None:
            self.check(self.experiment)
            self.check_images(None)

    def maps(self, method: str, rows: Sequence[int]) -> torch.Tensor:
        return torch.from_numpy(np.array(maps_of(self.design, self.state, self.store, method, rows)))

    def imputers(self) -> dict[str, Imputer]:
        """Those that are ready: not the ones whose training is missing, nor those that are code of a plan."""
        return self._ready(self.parts.imputers)

    def all_imputers(self) -> dict[str, Imputer]:
        """Those too that are code of a plan, which is run for them."""
        return self._ready(self.experiment.imputers)

    def _ready(self, imputers: Mapping[str, Imputer | GainRecipe]) -> dict[str, Imputer]:
        found = {}
        for name, imputer in imputers.items():
            trained = self.design.imputer_item(name)
            if all(item.id in self.state.stored for item in trained):
                inputs = {item.id: self.store.read(item) for item in trained}
                found[name] = built_imputer(imputer, trained, inputs)
        return found
