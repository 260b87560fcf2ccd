"""The noise of Noisy Linear, so that a filled pixel is no smoother than its neighbors."""

from dataclasses import dataclass
from functools import lru_cache
from typing import final

import torch
from torch import Tensor

from roadworthy.core.random import Key
from roadworthy.core.types import Ids, Images, Removed


@final
@dataclass(frozen=True, eq=False)
class Noise:
    """Gaussian noise for removed pixels. All masks of an image share its field, which is drawn for the whole image."""

    fields: Tensor
    """standard normal `(m, c, h, w)`, one per image id"""
    rows: Tensor
    """int64 `(n,)`: which field is whose"""
    deviation: float

    @staticmethod
    def drawn(key: Key, ids: Ids, shape: tuple[int, ...], deviation: float) -> "Noise":
        unique, rows = torch.unique(ids, return_inverse=True)
        return Noise(_fields(key.fold("noise"), tuple(unique.tolist()), shape), rows, deviation)

    def added(self, filled: Images, removed: Removed) -> Images:
        noise = self.fields[self.rows].to(filled.device)
        return torch.where(removed[:, None].to(filled.device), filled + self.deviation * noise, filled)


@lru_cache(maxsize=1)
def _fields(key: Key, ids: tuple[int, ...], shape: tuple[int, ...]) -> Tensor:
    """Methods, orders and fractions of a batch follow each other and share its fields: the last ones are kept."""
    return key.normal(ids, shape)
