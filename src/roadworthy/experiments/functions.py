"""The smallest useful calls: fill holes, and see which pixels a map removes."""

from typing import Any

import torch

from roadworthy.attributions.maps import as_maps
from roadworthy.core.errors import ShapeError
from roadworthy.core.masks import checked_fractions, removed_at
from roadworthy.core.random import Key
from roadworthy.core.types import Images, Imputer, Removed
from roadworthy.datasets import Arrays
from roadworthy.experiments.registry import lookup


def impute(imputer: Imputer, images: Any, removed: Any, *, seed: int = 0, ids: Any = None) -> Images:
    """Fill the `removed` pixels (True = gone) of `images` `(n, c, h, w)` in [0, 1].

    >>> images, hole = torch.tensor([[[[0.2, 0.5, 0.4]]]]), torch.tensor([[[False, True, False]]])
    >>> from roadworthy import NoisyLinear
    >>> impute(NoisyLinear(noise=0), images, hole)[0, 0, 0]
    tensor([0.2000, 0.3000, 0.4000])
    """
    data = Arrays(images, ids=ids)
    (batch,) = data.batches(len(data))
    gone = torch.as_tensor(removed)
    expected = (len(batch), *batch.images.shape[-2:])
    if gone.dtype != torch.bool or tuple(gone.shape) != expected:
        raise ShapeError(f"removed is {gone.dtype} {tuple(gone.shape)}: give a bool mask {expected}, True = gone")
    return imputer(batch, gone, Key(seed))


def removal_mask(maps: Any, fraction: float, order: str = "morf", *, seed: int = 0, ids: Any = None) -> Removed:
    """The pixels that are gone at `fraction`: bool `(n, h, w)`, exactly floor(fraction·h·w + ½) per image.

    >>> removal_mask(torch.tensor([[[0.1, 0.9], [0.5, 0.3]]]), 0.5)
    tensor([[[False,  True],
             [ True, False]]])
    """
    checked_fractions([fraction])
    maps = torch.as_tensor(maps)
    if maps.ndim != 3:
        raise ShapeError(f"maps {tuple(maps.shape)}: give one score per pixel, (n, h, w)")
    samples = torch.arange(len(maps)) if ids is None else torch.as_tensor(ids)
    ranks = lookup("orders", order).make()(as_maps("maps", maps, samples, maps[:, None]), samples, Key(seed))
    return removed_at(ranks, fraction)
