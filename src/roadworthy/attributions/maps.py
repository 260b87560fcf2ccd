"""From whatever a method returns to maps `(n, h, w)`: channels reduced by a named rule, small maps enlarged openly.

>>> maps = torch.tensor([[[[1.0]], [[-3.0]]]])
>>> [reduced(maps, rule).item() for rule in ("sum", "abs_sum", "max_abs")]
[-2.0, 4.0, 3.0]
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self, final

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor
from torch.nn.functional import interpolate

from roadworthy.core.errors import DataError, InputError, ShapeError, UpsampledMapsWarning
from roadworthy.core.random import Key
from roadworthy.core.types import Batch, Ids, Images, Maps, Model

Reduce = Literal["sum", "abs_sum", "max_abs"]

_RULES: dict[str, Callable[[Tensor], Tensor]] = {
    "sum": lambda maps: maps.sum(dim=1),
    "abs_sum": lambda maps: maps.abs().sum(dim=1),
    "max_abs": lambda maps: maps.abs().amax(dim=1),
}


def reduced(maps: Tensor, rule: Reduce) -> Maps:
    """Channels `(n, c, h, w)` to maps: `sum` (signed) is the paper's."""
    if rule not in _RULES:
        raise InputError(f"reduce={rule!r}: choose one of {', '.join(_RULES)}")
    return _RULES[rule](maps)


def as_maps(name: str, maps: Any, ids: Ids, images: Images, reduce: Reduce = "sum") -> Maps:
    """Check the maps that `name` gave for these images, and bring them to one finite score per pixel, on the CPU."""
    if not isinstance(maps, Tensor | np.ndarray):
        raise ShapeError(f"{name} returned a {type(maps).__name__}: return a tensor of maps, one per pixel, (n, h, w)")
    maps = torch.as_tensor(maps).detach().cpu()
    if maps.ndim not in (3, 4) or len(maps) != len(images) or maps.shape[1:-2] not in ((), (1,), images.shape[1:2]):
        raise ShapeError(
            f"{name}: maps {tuple(maps.shape)} do not fit images {tuple(images.shape)}: "
            "give one map per image, (n, h, w) or (n, c, h, w)"
        )
    maps = maps if maps.ndim == 3 else reduced(maps, reduce)
    broken = torch.isnan(maps.flatten(1)).any(dim=1)
    if broken.any():
        raise InputError(f"{name}: NaN in the maps of images {_some(ids[broken])}: remove or repair them")
    return _enlarged(name, maps.float(), images)


def _enlarged(name: str, maps: Maps, images: Images) -> Maps:
    """PrecomputedMaps of a coarser grid (CAMs) grow to the images' size by bilinear interpolation, with a warning."""
    size = images.shape[-2:]
    if maps.shape[-2:] == size:
        return maps
    if not (maps.shape[-2] <= size[0] and maps.shape[-1] <= size[1]):
        raise ShapeError(
            f"{name}: maps of {maps.shape[-2]}×{maps.shape[-1]} pixels do not fit images of {size[0]}×{size[1]}: "
            "one score per pixel; reduce channels with reduce='sum', resize maps to the images"
        )
    warnings.warn(
        f"{name}: maps of {maps.shape[-2]}×{maps.shape[-1]} were enlarged to {size[0]}×{size[1]} (bilinear)",
        UpsampledMapsWarning,
        stacklevel=2,
    )
    return interpolate(maps[:, None], size=tuple(size), mode="bilinear", align_corners=False)[:, 0]


def _some(ids: Ids, most: int = 5) -> str:
    shown = ", ".join(str(sample) for sample in ids[:most].tolist())
    return shown + (f" … ({len(ids)} in all)" if len(ids) > most else "")


@final
@dataclass(frozen=True, eq=False)
class PrecomputedMaps:
    """Ready maps, one per image: `(n, h, w)` or `(n, c, h, w)`, in the order of the images, or found by `ids`."""

    maps: Any
    ids: Ids | None = None
    reduce: Reduce = "sum"

    @classmethod
    def load(cls, path: str | Path, name: str | None = None, **options: Any) -> Self:
        """Read .npy, .npz or .safetensors; `name` picks one array where a file holds several."""
        return cls(_read(Path(path), name), **options)

    def bound(self, name: str, ids: Ids) -> Self:
        """These maps, known to belong to the images `ids`; a wrong count is an error now, not after hours."""
        own = ids if self.ids is None else torch.as_tensor(self.ids)
        if len(self.maps) != len(own):
            raise ShapeError(f"{name}: {len(self.maps)} maps for {len(own)} images: give one map per image, in order")
        missing = ids[~torch.isin(ids, own)]
        if len(missing):
            raise ShapeError(f"{name}: no map for images {_some(missing)}")
        return type(self)(self.maps, own, self.reduce)

    def rows(self, ids: Ids) -> Tensor:
        """The maps of these images."""
        if self.ids is None:
            raise InputError("ready maps do not know their images: give ids=, or hand them to rw.compare")
        order = torch.argsort(self.ids)
        return torch.as_tensor(self.maps[order[torch.searchsorted(self.ids[order], ids)].numpy()])

    def __call__(self, model: Model, batch: Batch, key: Key) -> Maps:
        maps = self.rows(batch.ids)
        return maps if maps.ndim == 3 else reduced(maps, self.reduce)


def _read(path: Path, name: str | None) -> Any:
    try:
        if path.suffix == ".npy":
            return np.load(path, mmap_mode="r", allow_pickle=False)
        if path.suffix == ".npz":
            with np.load(path, allow_pickle=False) as arrays:
                return arrays[_only(path, list(arrays.files), name)]
        if path.suffix == ".safetensors":
            tensors = load_file(path)
            return tensors[_only(path, list(tensors), name)]
    except (OSError, ValueError, EOFError, SafetensorError) as error:
        raise DataError(f"{path}: no maps could be read ({error}); save them again as .npy or .safetensors") from error
    raise DataError(f"{path}: maps are read from .npy, .npz or .safetensors files, not from {path.suffix or 'this'}")


def _only(path: Path, names: list[str], wanted: str | None) -> str:
    if wanted is None and len(names) == 1:
        return names[0]
    if wanted not in names:
        raise InputError(f"{path} holds the arrays {', '.join(names)}: choose one with name=")
    return wanted
