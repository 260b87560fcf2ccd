"""What an experiment measures: one Point of a curve and its Predictions, image by image. Needs NumPy only."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Predictions:
    """What a evaluator said of each image: never only a mean, so that every statistic can be redone later."""

    ids: NDArray[np.int64]
    labels: NDArray[np.int64]
    predicted: NDArray[np.int64]
    probability: NDArray[np.float32]
    """of the target class"""

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def correct(self) -> NDArray[np.bool_]:
        return np.equal(self.predicted, self.labels)

    def take(self, rows: Sequence[int]) -> "Predictions":
        return Predictions(self.ids[rows], self.labels[rows], self.predicted[rows], self.probability[rows])

    @staticmethod
    def join(predictions: "Sequence[Predictions]") -> "Predictions":
        def joined(name: str) -> NDArray[Any]:
            return np.concatenate([getattr(prediction, name) for prediction in predictions])

        return Predictions(joined("ids"), joined("labels"), joined("predicted"), joined("probability"))


class Recovered(NamedTuple):
    """How well it can be told which pixels were filled, per image `(n,)`."""

    error: NDArray[np.float64]
    """share of the pixels that the imputation predictor tells wrongly"""
    auc: NDArray[np.float64]
    """how often a filled pixel looks more filled to it than a kept one"""
    inverse: NDArray[np.float64]
    """share told wrongly by who calls every pixel of the fill's color filled; NaN where the fill has no one color"""


class Copy(NamedTuple):
    """A control made from another method's maps: it cannot know more than the original."""

    of: str
    how: str
    """blurred or inverted"""

    @property
    def name(self) -> str:
        return f"{self.of} {self.how}"


class Point(NamedTuple):
    """One point of one curve: what a Predictions is about."""

    method: str
    order: str
    imputer: str
    evaluator: str
    fraction: float
    seed: int
    model: str = "model"
    units: str = "pixels"
