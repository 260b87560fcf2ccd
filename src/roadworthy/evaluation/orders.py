"""The order of removal: most relevant first (MoRF) or least relevant first (LeRF).

Ties are broken at random per image, by key: never by position, never by a threshold. So from a map that is zero on
80 % of its pixels exactly the requested fraction is removed too.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray

from roadworthy.core.random import Key
from roadworthy.core.types import Ids, Maps, Order, Ranks


def most_relevant_first(maps: Maps, ids: Ids, key: Key) -> Ranks:
    """MoRF: rank 0 is the pixel with the highest value."""
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

    def __call__(self, maps: Maps, ids: Ids, key: Key) -> Ranks:
        return backwards(self.of(maps, ids, key))


least_relevant_first = Reversed(most_relevant_first)


def backwards(ranks: Ranks) -> Ranks:
    return ranks.shape[-2] * ranks.shape[-1] - 1 - ranks


def rank(orders: Mapping[str, Order], maps: Maps, ids: Ids, key: Key) -> dict[str, Ranks]:
    """The ranks of every order by name; an order and its reverse are sorted once."""
    sorts = {name: order.of if isinstance(order, Reversed) else order for name, order in orders.items()}
    ranks = {order: order(maps, ids, key) for order in set(sorts.values())}
    return {
        name: backwards(ranks[sorts[name]]) if isinstance(order, Reversed) else ranks[order]
        for name, order in orders.items()
    }


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
