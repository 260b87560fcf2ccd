"""The given model evaluates every point, without retraining (ROAD)."""

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from roadworthy.core.types import Images, Removed
from roadworthy.models.normalized import Normalized
from roadworthy.models.prediction import probabilities


@final
@dataclass(frozen=True, eq=False)
class NoRetrain:
    """The given model evaluates every point (ROAD)."""

    model: Normalized
    device: torch.device | None = None

    def __call__(self, images: Images, removed: Removed) -> Tensor:
        """On the device of the model; the sweep checks them for NaN when it brings them back."""
        return probabilities(self.model, images, self.device or self.model.device)
