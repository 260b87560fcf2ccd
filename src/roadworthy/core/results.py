"""What an experiment produces: `Point`s of curves and the per-image `Predictions` at each. Needs NumPy only."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Predictions:
    """An evaluator's prediction for every image, never only a mean, so that any statistic can be recomputed later.

    All arrays have length n and the same order.
    """

    ids: NDArray[np.int64]
    labels: NDArray[np.int64]
    predicted: NDArray[np.int64]
    """predicted class"""
    probability: NDArray[np.float32]
    """probability of the target class"""

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def correct(self) -> NDArray[np.bool_]:
        """Where the predicted class is the label."""
        return np.equal(self.predicted, self.labels)

    def take(self, rows: Sequence[int]) -> "Predictions":
        return Predictions(self.ids[rows], self.labels[rows], self.predicted[rows], self.probability[rows])

    @staticmethod
    def join(predictions: "Sequence[Predictions]") -> "Predictions":
        """Concatenate the predictions for consecutive blocks of images."""

        def joined(field: str) -> NDArray[Any]:
            return np.concatenate([getattr(block, field) for block in predictions])

        return Predictions(joined("ids"), joined("labels"), joined("predicted"), joined("probability"))


class MaskDetection(NamedTuple):
    """How well imputed pixels can be detected in an imputed image, per image `(n,)`."""

    error: NDArray[np.float64]
    """share of pixels that the mask detector misclassifies at logit 0, without knowing how many were removed"""
    auc: NDArray[np.float64]
    """ROC AUC of the detector's logits, imputed against kept pixels"""
    trivial_error: NDArray[np.float64]
    """share misclassified by calling every pixel of the imputed color imputed; NaN unless the imputer uses one color"""


class Copy(NamedTuple):
    """A control made from another method's maps: it cannot know more than the original."""

    of: str
    how: str
    """blurred or inverted"""

    @property
    def name(self) -> str:
        return f"{self.of} {self.how}"


class Degraded(NamedTuple):
    """A copy of a method's maps that the self-test evaluates: never listed among the methods."""

    of: str
    how: str
    """swapped: of other images · blurred, sharpened · randomized: of a model whose weights were shuffled"""
    amount: float = 1.0
    """share of images or of layers, or a width in pixels"""

    @property
    def name(self) -> str:
        """With a no-break space, which no name of a method has."""
        return f"{self.of}\N{NO-BREAK SPACE}{self.how} {self.amount:g}"


class Point(NamedTuple):
    """One point of one curve; the key under which its `Predictions` are kept."""

    method: str
    order: str
    imputer: str
    evaluator: str
    fraction: float
    """fraction of pixels removed"""
    seed: int
    model: str = "model"
    units: str = "pixels"
    """what is removed at a time"""
