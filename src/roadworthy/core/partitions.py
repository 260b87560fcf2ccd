"""Units: pixels that are removed together. Maps are pooled to units, and ranks of units become ranks of pixels.

Whatever is pooled is added in an order that depends on the unit alone: neither device nor batch size changes a bit.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, Self, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from roadworthy.core.device import moved

UnitReduction = Literal["mean", "sum", "max", "max_abs"]
"""How the values of a map inside a unit become the value of the unit."""


class _Rule(NamedTuple):
    prepare: Callable[[Tensor], Tensor]
    combine: Callable[[Tensor, Tensor], Tensor]
    neutral: float


_RULES: Mapping[str, _Rule] = {
    "mean": _Rule(torch.clone, torch.add, 0.0),
    "sum": _Rule(torch.clone, torch.add, 0.0),
    "max": _Rule(torch.clone, torch.maximum, -math.inf),
    "max_abs": _Rule(torch.abs, torch.maximum, -math.inf),
}


@final
@dataclass(frozen=True, eq=False)
class Partition:
    """The units of n images. Tensors have a first axis of n, or of 1 where all images have the same units."""

    labels: Tensor
    """int64 `(n, h, w)`: the unit of each pixel, 0 to k − 1"""
    counts: tuple[int, ...]
    """the number of units k of each image"""
    grid: tuple[int, int] | None
    """rows and columns, where units are patches in reading order"""
    reduction: UnitReduction
    pixels: Tensor
    """int64 `(n, h·w)`: pixels sorted by unit"""
    units: Tensor
    """int64 `(n, h·w)`: their units"""
    starts: Tensor
    """int64 `(n, most units)`: where each unit starts in `pixels`"""
    sizes: Tensor
    """int64 `(n, most units)`: pixels of each unit"""
    numbers: Tensor
    """int64 `(n, 1, 1)`: `counts`, where the labels are"""
    largest: int
    """pixels of the largest unit"""

    @classmethod
    def of(cls, labels: Tensor, reduction: UnitReduction = "mean", grid: tuple[int, int] | None = None) -> Self:
        """From labels `(n, h, w)` or `(1, h, w)` without gaps, on the CPU."""
        flat = labels.reshape(len(labels), -1).numpy()
        counts = tuple(int(most) + 1 for most in flat.max(axis=1))
        pixels = np.argsort(_small(flat, max(counts)), axis=1, kind="stable")
        starts, sizes = np.zeros((len(flat), max(counts)), np.int64), np.ones((len(flat), max(counts)), np.int64)
        for row, (units, number) in enumerate(zip(flat, counts, strict=True)):
            sizes[row, :number] = np.bincount(units, minlength=number)
            starts[row, 1:number] = np.cumsum(sizes[row, : number - 1])
        return cls(
            labels, counts, grid, reduction, torch.from_numpy(pixels),
            torch.from_numpy(np.take_along_axis(flat, pixels, axis=1)), torch.from_numpy(starts),
            torch.from_numpy(sizes), torch.tensor(counts)[:, None, None], int(sizes.max()),
        )  # fmt: skip

    @property
    def shared(self) -> bool:
        """All images have the same units."""
        return len(self.counts) == 1

    @property
    def adds(self) -> bool:
        """Values are added, so infinite ones of both signs cannot be pooled."""
        return self.reduction in ("mean", "sum")

    def __getitem__(self, rows: slice | Tensor | Sequence[int]) -> "Partition":
        if self.shared:
            return self
        numbers = range(len(self.counts))[rows] if isinstance(rows, slice) else [int(row) for row in rows]
        kept: dict[str, Any] = {name: getattr(self, name)[rows] for name in _TENSORS}
        return replace(self, counts=tuple(self.counts[row] for row in numbers), **kept)

    def to(self, device: torch.device) -> "Partition":
        if self.labels.device == device:
            return self
        placed: dict[str, Any] = {name: moved(getattr(self, name), device) for name in _TENSORS}
        return replace(self, **placed)

    def each_label(self, images: int) -> Tensor:
        """int64 `(n, h, w)`."""
        return self.labels.expand(images, *self.labels.shape[1:])

    def pool(self, maps: Tensor) -> Tensor:
        """float64 `(n, most units)`: the value of each unit by the rule of reduction. Values beyond k mean nothing."""
        rule = _RULES[self.reduction]
        values = rule.prepare(self._taken(maps.flatten(1).double(), self.pixels))
        step = 1
        while step < self.largest:  # values[i] becomes that of up to 2·step pixels of its unit, from i on
            same = self.units[:, step:] == self.units[:, :-step]
            following = torch.where(same, values[:, step:], rule.neutral)
            values[:, :-step] = rule.combine(values[:, :-step], following)
            step *= 2
        pooled = self._taken(values, self.starts)
        return pooled / self.sizes if self.reduction == "mean" else pooled

    def painted(self, values: Tensor) -> Tensor:
        """Maps `(n, h, w)` that pool to these values of units `(n, k)`."""
        spread = values.double() / self.sizes if self.reduction == "sum" else values
        return self.on_pixels(spread)

    def on_pixels(self, values: Tensor) -> Tensor:
        """Each pixel gets the value of its unit: `(n, k)` to `(n, h, w)`."""
        return self._taken(values, self.labels.flatten(1)).reshape(-1, *self.labels.shape[1:])

    def groups(self, images: int) -> list[tuple[int, Tensor | slice]]:
        """Images with equally many units, as numbers of units and rows: they are ranked together."""
        different = sorted(set(self.counts))
        if len(different) == 1:
            return [(different[0], slice(None))]
        counts = torch.tensor(self.counts)
        return [(number, torch.nonzero(counts == number)[:, 0]) for number in different]

    def joined(self, groups: Sequence[Tensor]) -> Tensor:
        """Values of units `(rows, k)`, one tensor per group, on pixels `(n, h, w)`."""
        if len(groups) == 1:
            return self.on_pixels(groups[0].flatten(1))
        together = groups[0].new_zeros(len(self.counts), max(self.counts))
        for (number, rows), values in zip(self.groups(len(self.counts)), groups, strict=True):
            together[on(rows, values.device), :number] = values.flatten(1)
        return self.on_pixels(together)

    def shape(self, number: int) -> tuple[int, int]:
        """Of `number` units side by side: their grid, or one row."""
        return self.grid if self.grid is not None else (1, number)

    def _taken(self, values: Tensor, places: Tensor) -> Tensor:
        if self.shared:
            return values[:, places[0]]
        return values.gather(1, places)


_TENSORS = ("labels", "pixels", "units", "starts", "sizes", "numbers")


def on(rows: Tensor | slice, device: torch.device) -> Tensor | slice:
    """Rows to index tensors on `device` with."""
    return rows if isinstance(rows, slice) else rows.to(device)


def _small(labels: NDArray[np.int64], most: int) -> NDArray[np.int64] | NDArray[np.uint16]:
    """NumPy sorts 16-bit numbers by radix: much faster."""
    return labels.astype(np.uint16) if most <= 1 << 16 else labels
