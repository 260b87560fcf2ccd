"""An experiment as live objects: a model, images, methods and the settings under which they are evaluated."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import torch
from torch.nn.functional import cross_entropy

from roadworthy.attributions.maps import ChannelReduction
from roadworthy.core.random import Key
from roadworthy.core.types import Attribution, Dataset, Imputer, Order
from roadworthy.evaluation.units import PIXELS, UnitSetting
from roadworthy.models.normalized import Normalized
from roadworthy.training.gain import GainRecipe
from roadworthy.training.loop import Loss
from roadworthy.training.recipe import Recipe
from roadworthy.training.trainer import Augment

Target = Literal["label", "prediction"]

POINT_EVALUATORS = ("retrain", "warm-start")
"""Evaluators that train a model for each point, on train images with the masks of that point."""
TRAINED_EVALUATORS = (*POINT_EVALUATORS, "fine-tuned")
"""Evaluators that need train images and a recipe."""
EVALUATORS = ("no-retrain", *TRAINED_EVALUATORS)


_CPU = torch.device("cpu")


class Setting(NamedTuple):
    """One way to evaluate a method, by the names of its parts."""

    order: str
    imputer: str
    evaluator: str


@dataclass(frozen=True, eq=False, kw_only=True)
class Experiment:
    """`compare` builds it from its arguments, `run` from a plan; everything after that is shared."""

    model: Normalized
    data: Dataset
    methods: Mapping[str, Attribution]
    """the user's methods and the blind controls"""
    orders: Mapping[str, Order]
    imputers: Mapping[str, Imputer | GainRecipe]
    """a recipe stands for a GAIN that is trained on `train` first"""
    target: Target = "label"
    """the class that is explained and whose probability is reported; accuracy is always against the label"""
    channel_reduction: ChannelReduction = "sum"
    units: UnitSetting = PIXELS
    """what is removed at a time; called with a batch, it attaches the units of its images"""
    map_seed: int = 0
    map_batch_size: int = 64
    """images explained at once; separate from `batch_size`, which may change without changing a map"""
    batch_size: int = 64
    """images evaluated at once"""
    device: torch.device = _CPU
    threads: int | None = None
    """of torch; None leaves its setting alone"""
    train: Dataset | None = None
    recipe: Recipe | None = None
    network: Callable[[], Any] | None = None
    """makes a fresh network for retraining"""
    loss: Loss = cross_entropy
    augment: Augment | None = None

    @property
    def map_key(self) -> Key:
        return Key(self.map_seed).fold("maps")
