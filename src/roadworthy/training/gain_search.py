"""Grid search for GAIN over alpha and hint rate, by imputation MSE on held-out images."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import NamedTuple

import torch

from roadworthy.core.errors import RangeError, TrainingError
from roadworthy.core.types import Dataset
from roadworthy.training.gain import GainRecipe, GainRecord, train_gain

ALPHAS = (0.1, 1.0, 10.0, 100.0)
HINTS = (0.01, 0.1, 0.3, 0.9)


class Cell(NamedTuple):
    """One pair of the grid at its best epoch; NaN where training failed."""

    alpha: float
    hint: float
    imputation: float
    """MSE of removed pixels"""
    reconstruction: float
    """MSE of kept pixels"""
    epoch: int
    failure: str = ""


def grid(recipe: GainRecipe, alphas: Sequence[float], hints: Sequence[float]) -> list[GainRecipe]:
    """All recipes of a search, validated before the first is trained."""
    if not alphas or not hints:
        raise RangeError("the grid is empty: give at least one alpha and one hint rate")
    return [replace(recipe, alpha=alpha, hint=hint) for alpha, hint in product(alphas, hints)]


def search(
    recipes: Sequence[GainRecipe],
    data: Dataset,
    checkpoints: Path,
    device: torch.device | str = "cpu",
    on_epoch: Callable[[GainRecord], object] = lambda record: None,
) -> Iterator[Cell]:
    """One cell per recipe. All share split, masks and initial weights; finished ones are read from `checkpoints`."""
    for recipe in recipes:
        checkpoint = checkpoints / f"alpha-{recipe.alpha:g}-hint-{recipe.hint:g}.checkpoint"
        try:
            trained = train_gain(recipe, data, checkpoint=checkpoint, device=device, on_epoch=on_epoch)
        except TrainingError as error:
            yield Cell(recipe.alpha, recipe.hint, math.nan, math.nan, -1, str(error))
        else:
            best = trained.records[trained.epoch]
            yield Cell(recipe.alpha, recipe.hint, best.imputation, best.reconstruction, best.epoch)
