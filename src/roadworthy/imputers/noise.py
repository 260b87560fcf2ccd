"""Noise for imputed pixels, so that they are not smoother than their neighbors."""

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from roadworthy.core.device import CPU, normal
from roadworthy.core.random import Key
from roadworthy.core.types import Ids, Images, Removed


@final
@dataclass(frozen=True, eq=False)
class Noise:
    """Gaussian noise for removed pixels, drawn for the whole image: all masks of an image share one field."""

    fields: Tensor
    """standard normal `(m, c, h, w)`, one per distinct id"""
    rows: Tensor
    """int64 `(n,)` on the CPU: the field of each image"""
    deviation: float

    @staticmethod
    def drawn(
        key: Key, ids: Ids, shape: tuple[int, ...], deviation: float, device: torch.device | None = None
    ) -> "Noise":
        """Drawn on the CPU and moved to `device` once: the next methods, orders and fractions find it there."""
        distinct, rows = _distinct(ids)
        fields = normal(key.fold("noise"), distinct, shape, device or CPU)
        return Noise(fields, rows, deviation)

    def added(self, filled: Images, removed: Removed) -> Images:
        """Add noise to the removed pixels of `filled`."""
        noise = self.deviation * self.each(filled.device)
        return torch.where(removed[:, None].to(filled.device), filled + noise, filled)

    def each(self, device: torch.device) -> Tensor:
        """The field of each image. Images that fractions repeat in order need no index on the device."""
        times, rest = divmod(len(self.rows), max(1, len(self.fields)))
        fields = self.fields.to(device)
        if not rest and torch.equal(self.rows, torch.arange(len(fields)).repeat(times)):
            return fields if times == 1 else fields.repeat(times, 1, 1, 1)
        return fields[self.rows.to(device)]


def _distinct(ids: Ids) -> tuple[tuple[int, ...], Tensor]:
    """The distinct ids in order of appearance, and the row of each image among them."""
    values: list[int] = ids.tolist()
    position = {value: row for row, value in enumerate(dict.fromkeys(values))}
    return tuple(position), torch.tensor([position[value] for value in values], dtype=torch.int64)
