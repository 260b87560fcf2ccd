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

    @staticmethod
    def join(predictions: "Sequence[Predictions]") -> "Predictions":
        def joined(name: str) -> NDArray[Any]:
            return np.concatenate([getattr(prediction, name) for prediction in predictions])

        return Predictions(joined("ids"), joined("labels"), joined("predicted"), joined("probability"))


class MaskDetection(NamedTuple):
    """How well imputed pixels can be detected in an imputed image, per image `(n,)`."""

    error: NDArray[np.float64]
    """share of pixels that the mask detector misclassifies"""
    auc: NDArray[np.float64]
    """ROC AUC of the detector's logits, imputed against kept pixels"""
    trivial_error: NDArray[np.float64]
    """share misclassified by calling every pixel of the imputed color imputed; NaN unless the imputer uses one color"""


class Point(NamedTuple):
    """One point of one curve: what a Predictions is about."""

    method: str
    order: str
    imputer: str
    evaluator: str
    fraction: float
    seed: int
