"""The order of removal: most relevant first (MoRF) or least relevant first (LeRF).

Ties are broken at random per image, by key: never by position, never by a threshold. So from a map that is zero on
80 % of its pixels exactly the requested fraction is removed too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from roadworthy.core.device import CPU, on_device, shuffles, stays_on_device
from roadworthy.core.partitions import Partition, on
from roadworthy.core.random import Key
from roadworthy.core.types import Ids, Maps, Order, Ranks


@on_device
def most_relevant_first(maps: Maps, ids: Ids, key: Key) -> Ranks:
    """MoRF: rank 0 is the pixel with the highest value."""
    if maps.device != CPU:
        shuffled = shuffles(key.fold("ties"), tuple(ids.tolist()), maps[0].numel(), maps.device)
        return _shuffled_ranks(maps.detach().flatten(1), shuffled).reshape(maps.shape)
    flat = maps.detach().reshape(len(maps), -1).cpu().numpy()
    ties = key.fold("ties")
    # One image at a time: a sort of whole batches would gain nothing, and only tied images need random numbers.
    ranks = [_descending_ranks(row, int(sample), ties) for row, sample in zip(flat, ids, strict=True)]
    return torch.from_numpy(np.stack(ranks)).reshape(maps.shape)


@final
@dataclass(frozen=True)
class Reversed:
    """An order reversed, ties included: it removes at a fraction what the other keeps at its complement."""

    of: Order

    @property
    def on_device(self) -> bool:
        return stays_on_device(self.of)

    def __call__(self, maps: Maps, ids: Ids, key: Key) -> Ranks:
        return backwards(self.of(maps, ids, key))


least_relevant_first = Reversed(most_relevant_first)


def backwards(ranks: Ranks) -> Ranks:
    return ranks.shape[-2] * ranks.shape[-1] - 1 - ranks


def rank(
    orders: Mapping[str, Order], maps: Maps, ids: Ids, key: Key, units: Partition | None = None
) -> dict[str, Ranks]:
    """The ranks of every order by name, on the device of `maps`; an order and its reverse are sorted once.

    With `units`, maps are pooled to them, and each pixel gets the rank of its unit.
    """
    if units is not None:
        return _ranked_units(orders, maps, ids, key, units)
    sorts = {name: order.of if isinstance(order, Reversed) else order for name, order in orders.items()}
    ranks = {order: _ranked(order, maps, ids, key) for order in set(sorts.values())}
    return {
        name: backwards(ranks[sorts[name]]) if isinstance(order, Reversed) else ranks[order]
        for name, order in orders.items()
    }


def _ranked_units(orders: Mapping[str, Order], maps: Maps, ids: Ids, key: Key, units: Partition) -> dict[str, Ranks]:
    """An order sees the units as the pixels of a small image: of their grid, or of a single row."""
    values = units.pool(maps)
    groups = [
        rank(orders, values[on(rows, values.device), :number].reshape(-1, *units.shape(number)), ids[rows], key)
        for number, rows in units.groups(len(ids))
    ]
    return {name: units.joined([group[name] for group in groups]) for name in orders}


def _ranked(order: Order, maps: Maps, ids: Ids, key: Key) -> Ranks:
    if stays_on_device(order) or maps.device == CPU:
        return order(maps, ids, key)
    return order(maps.cpu(), ids, key).to(maps.device)


def draw_ties(
    orders: Sequence[Order], ids: Ids, pixels: int, key: Key, device: torch.device, units: Partition | None = None
) -> None:
    """Draw the tie-breaking for these images and move it to `device`, before they are ranked there."""
    if device == CPU or not any(stays_on_device(order) for order in orders):
        return
    for number, rows in [(pixels, slice(None))] if units is None else units.groups(len(ids)):
        shuffles(key.fold("ties"), tuple(ids[rows].tolist()), number, device)


def _shuffled_ranks(maps: Tensor, shuffled: Tensor) -> Tensor:
    """The ranks of `_descending_ranks` for all images at once, `(n, pixels)`: a stable sort of shuffled pixels.

    Whether an image has ties is not asked, as the answer would have to be waited for.
    """
    values = maps.gather(1, shuffled) + 0.0  # turns -0 into 0, which some sorts distinguish
    leaving = shuffled.gather(1, values.sort(dim=1, stable=True).indices)
    last_first = torch.arange(maps.shape[1] - 1, -1, -1, device=maps.device).expand_as(leaving)
    return torch.empty_like(leaving).scatter_(1, leaving, last_first)


def _descending_ranks(maps: NDArray[np.float32], sample: int, ties: Key) -> NDArray[np.int64]:
    leaving = np.argsort(maps)
    ordered = maps[leaving]
    same = ordered[1:] == ordered[:-1]
    if same.any():
        _shuffle_ties(leaving, same, ties.permutation(sample, len(maps)))
    ranks = np.empty(len(maps), dtype=np.int64)
    ranks[leaving] = np.arange(len(maps) - 1, -1, -1)
    return ranks


def _shuffle_ties(leaving: NDArray[np.int64], same: NDArray[np.bool_], shuffled: NDArray[np.int64]) -> None:
    """Put tied pixels, where `same` marks a value that equals the one before it, into the order of `shuffled`."""
    tied = np.flatnonzero(np.append(same, False) | np.append(False, same))
    group = np.cumsum(np.append(True, ~same))[tied]
    place = np.empty(len(shuffled), dtype=np.int64)
    place[shuffled] = np.arange(len(shuffled))
    pixels = leaving[tied]
    leaving[tied] = pixels[np.lexsort((place[pixels], group))]
