"""Maps that were computed before: arrays, and files that are read a few images at a time."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from roadworthy.attributions.layouts import Layout, channels_first
from roadworthy.attributions.map_files import read_maps
from roadworthy.attributions.maps import ChannelReduction, abbreviated, reduced
from roadworthy.core.errors import InputError, ShapeError
from roadworthy.core.random import Key
from roadworthy.core.types import Batch, Ids, Images, Maps, Model


@final
@dataclass(frozen=True, eq=False)
class PrecomputedMaps:
    """Precomputed maps `(n, h, w)`, `(n, c, h, w)` or `(n, h, w, c)`: in the order of the images or matched by `ids`.

    With an axis more, `(n, c, h, w, classes)` as shap has it, the map of the class to explain is taken.
    """

    maps: Any
    ids: Ids | None = None
    channel_reduction: ChannelReduction | None = None
    """by default that of the experiment"""
    layout: Layout | None = None
    """"nchw" or "nhwc", where the shape leaves both possible; channels are then summed unless a reduction is given"""
    per_class: bool | None = None
    """the last axis is the class; by default of maps with five axes"""

    @classmethod
    def load(cls, path: str | Path, name: str | None = None, **options: Any) -> Self:
        """Read a .npy, .npz, .safetensors, .zarr or .h5 file; `name` selects an array if the file holds several.

        An array named "ids" beside the maps says which images they belong to. All but .npz are read lazily.
        """
        maps, ids = read_maps(Path(path), name)
        return cls(maps, **{**({"ids": ids} if ids is not None else {}), **options})

    @property
    def has_classes(self) -> bool:
        return self.per_class if self.per_class is not None else len(self.maps.shape) == 5

    def bound(self, name: str, ids: Ids) -> Self:
        """These maps with ids, checked to cover the images `ids`: a wrong count raises before the run starts."""
        map_ids = ids if self.ids is None else torch.as_tensor(self.ids)
        count = self.maps.shape[0]
        if count != len(map_ids):
            raise ShapeError(f"{name}: {count} maps for {len(map_ids)} images: give one map per image, in order")
        if np.ma.is_masked(self.maps):
            raise InputError(f"{name}: masked values have no rank: fill them, as in maps.filled(0)")
        if len(torch.unique(map_ids)) < len(map_ids):
            raise InputError(f"{name}: an id is given to several maps: give one map per image")
        missing = ids[~torch.isin(ids, map_ids)]
        if len(missing):
            raise ShapeError(f"{name}: no map for images {abbreviated(missing)}")
        return replace(self, ids=map_ids)

    def rows(self, ids: Ids) -> Tensor:
        """The maps of these images."""
        if self.ids is None:
            raise InputError("precomputed maps without ids: give ids=, or pass them to rw.compare")
        order = torch.argsort(self.ids)
        maps = self.maps[order[torch.searchsorted(self.ids[order], ids)].numpy()]
        return maps if isinstance(maps, Tensor) else torch.from_numpy(_native(np.asarray(maps)))

    def merged(self, ids: Ids, images: Images) -> Tensor:
        """The maps of these images, summed over classes: NaN or a wrong shape of any of them shows."""
        maps = self.rows(ids)
        return self._reduced(maps.sum(dim=-1) if self.has_classes else maps, images)

    def __call__(self, model: Model, batch: Batch, key: Key) -> Maps:
        maps = self.rows(batch.ids)
        return self._reduced(of_classes(maps, model, batch) if self.has_classes else maps, batch.images)

    def _reduced(self, maps: Tensor, images: Images) -> Tensor:
        rule: ChannelReduction | None = self.channel_reduction or ("sum" if self.layout else None)
        if maps.ndim != 4 or rule is None:
            return maps
        return reduced(channels_first("precomputed maps", maps, tuple(images.shape), self.layout), rule)


def _native(maps: NDArray[Any]) -> NDArray[Any]:
    """In the machine's byte order, which torch requires, and writable, as it expects."""
    return np.array(maps, dtype=maps.dtype.newbyteorder("="))


def of_classes(maps: Tensor, model: Model, batch: Batch) -> Tensor:
    """Of maps `(n, …, classes)` that of each image's class."""
    with torch.no_grad():
        classes = model(batch.images[:1]).shape[1]
    if maps.shape[-1] != classes:
        raise ShapeError(
            f"maps {tuple(maps.shape)} hold {maps.shape[-1]} outputs, the model has {classes} classes: give the maps "
            "of all classes, or (n, h, w) of the class to explain"
        )
    return maps[torch.arange(len(maps)), ..., batch.labels.cpu()]
