"""Noise for imputed pixels, so that they are not smoother than their neighbors."""

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
    """Gaussian noise for removed pixels, drawn for the whole image: all masks of an image share one field."""

    fields: Tensor
    """standard normal `(m, c, h, w)`, one per distinct id"""
    rows: Tensor
    """int64 `(n,)`: the field of each image"""
    deviation: float

    @staticmethod
    def drawn(key: Key, ids: Ids, shape: tuple[int, ...], deviation: float) -> "Noise":
        unique, rows = torch.unique(ids, return_inverse=True)
        return Noise(_fields(key.fold("noise"), tuple(unique.tolist()), shape), rows, deviation)

    def added(self, filled: Images, removed: Removed) -> Images:
        """Add noise to the removed pixels of `filled`."""
        noise = self.fields[self.rows].to(filled.device)
        return torch.where(removed[:, None].to(filled.device), filled + self.deviation * noise, filled)


@lru_cache(maxsize=1)
def _fields(key: Key, ids: tuple[int, ...], shape: tuple[int, ...]) -> Tensor:
    """Cached, because consecutive calls (methods, orders and fractions of a batch) share their fields."""
    return key.normal(ids, shape)
