"""From the output of a method to maps `(n, h, w)`: check, reduce channels, upsample; and precomputed maps.

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

ChannelReduction = Literal["sum", "abs_sum", "max_abs"]
"""How channels `(n, c, h, w)` become maps `(n, h, w)`; `sum` (signed) is the paper's."""

_REDUCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "sum": lambda maps: maps.sum(dim=1),
    "abs_sum": lambda maps: maps.abs().sum(dim=1),
    "max_abs": lambda maps: maps.abs().amax(dim=1),
}


def reduced(maps: Tensor, channel_reduction: ChannelReduction) -> Maps:
    """Reduce channels `(n, c, h, w)` to maps `(n, h, w)`."""
    if channel_reduction not in _REDUCTIONS:
        raise InputError(f"channel_reduction={channel_reduction!r}: choose one of {', '.join(_REDUCTIONS)}")
    return _REDUCTIONS[channel_reduction](maps)


def as_maps(name: str, maps: Any, ids: Ids, images: Images, channel_reduction: ChannelReduction = "sum") -> Maps:
    """Check what method `name` returned for these images and convert it to maps `(n, h, w)` on the CPU.

    They are float32; float64 where float32 would make different values equal, and so lose their order.
    """
    if not isinstance(maps, Tensor | np.ndarray):
        raise ShapeError(f"{name} returned a {type(maps).__name__}: return a tensor of maps (n, h, w)")
    if np.ma.is_masked(maps):
        raise InputError(f"{name}: masked values have no rank: fill them, as in maps.filled(0)")
    maps = torch.as_tensor(maps).detach().cpu()
    if maps.ndim not in (3, 4) or len(maps) != len(images) or maps.shape[1:-2] not in ((), (1,), images.shape[1:2]):
        raise ShapeError(
            f"{name}: maps {tuple(maps.shape)} do not fit images {tuple(images.shape)}: "
            "give one map per image, (n, h, w) or (n, c, h, w)"
        )
    if maps.is_complex():
        raise InputError(f"{name}: complex maps have no order: give real values, such as maps.abs()")
    maps = maps if maps.ndim == 3 else reduced(maps, channel_reduction)
    if (bad := maps.isnan().flatten(1).any(dim=1)).any():
        raise InputError(f"{name}: NaN in the maps of images {_abbreviated(ids[bad])}: fix or leave out these images")
    floats = _as_floats(name, maps)
    if maps.shape[-2:] == images.shape[-2:]:
        return floats  # infinite values have a rank
    if (bad := floats.isinf().flatten(1).any(dim=1)).any():  # interpolation would spread them, and inf − inf is NaN
        raise InputError(
            f"{name}: infinite values in the maps of images {_abbreviated(ids[bad])}, which are smaller than the "
            "images and cannot be upsampled: give finite ones"
        )
    return _upsampled(name, floats, images)


def _as_floats(name: str, maps: Tensor) -> Tensor:
    """As float32 or, where that loses the order, as float64."""
    if maps.dtype not in (torch.float64, torch.int64, torch.int32):
        return maps.float()
    if _keeps_order(maps, torch.float32):
        return maps.float()
    if not _keeps_order(maps, torch.float64):
        raise InputError(
            f"{name}: no float can order these {str(maps.dtype).removeprefix('torch.')} values: scale them"
        )
    return maps.double()


def _keeps_order(maps: Tensor, dtype: torch.dtype) -> bool:
    """Different values of an image stay different, and finite ones finite."""
    ordered = maps.flatten(1).sort(dim=1).values
    converted = ordered.to(dtype)
    merged = (converted[:, 1:] == converted[:, :-1]) & (ordered[:, 1:] != ordered[:, :-1])
    return not bool(merged.any() or (converted.isinf() != ordered.isinf()).any())


def _upsampled(name: str, maps: Maps, images: Images) -> Maps:
    """Upsample maps of a coarser grid (CAMs) to the size of the images, bilinearly and with a warning."""
    size = images.shape[-2:]
    if not (maps.shape[-2] <= size[0] and maps.shape[-1] <= size[1]):
        raise ShapeError(
            f"{name}: maps of {maps.shape[-2]}×{maps.shape[-1]} pixels do not fit images of {size[0]}×{size[1]}: "
            "give one value per pixel; resize the maps to the images"
        )
    warnings.warn(
        f"{name}: maps of {maps.shape[-2]}×{maps.shape[-1]} were upsampled to {size[0]}×{size[1]} (bilinear)",
        UpsampledMapsWarning,
        stacklevel=2,
    )
    return interpolate(maps[:, None], size=tuple(size), mode="bilinear", align_corners=False)[:, 0]


def _abbreviated(ids: Ids, limit: int = 5) -> str:
    shown = ", ".join(str(sample) for sample in ids[:limit].tolist())
    return shown + (f" … ({len(ids)} in all)" if len(ids) > limit else "")


@final
@dataclass(frozen=True, eq=False)
class PrecomputedMaps:
    """Precomputed maps `(n, h, w)` or `(n, c, h, w)`: one per image, in the order of the images or matched by `ids`."""

    maps: Any
    ids: Ids | None = None
    channel_reduction: ChannelReduction | None = None
    """by default that of the experiment"""

    @classmethod
    def load(cls, path: str | Path, name: str | None = None, **options: Any) -> Self:
        """Read a .npy, .npz or .safetensors file; `name` selects an array if the file holds several."""
        return cls(_read(Path(path), name), **options)

    def bound(self, name: str, ids: Ids) -> Self:
        """These maps with ids, checked to cover the images `ids`: a wrong count raises before the run starts."""
        map_ids = ids if self.ids is None else torch.as_tensor(self.ids)
        if len(self.maps) != len(map_ids):
            raise ShapeError(
                f"{name}: {len(self.maps)} maps for {len(map_ids)} images: give one map per image, in order"
            )
        missing = ids[~torch.isin(ids, map_ids)]
        if len(missing):
            raise ShapeError(f"{name}: no map for images {_abbreviated(missing)}")
        return type(self)(self.maps, map_ids, self.channel_reduction)

    def rows(self, ids: Ids) -> Tensor:
        """The maps of these images."""
        if self.ids is None:
            raise InputError("precomputed maps without ids: give ids=, or pass them to rw.compare")
        order = torch.argsort(self.ids)
        return torch.as_tensor(self.maps[order[torch.searchsorted(self.ids[order], ids)].numpy()])

    def __call__(self, model: Model, batch: Batch, key: Key) -> Maps:
        maps = self.rows(batch.ids)
        return reduced(maps, self.channel_reduction) if maps.ndim == 4 and self.channel_reduction else maps


def _read(path: Path, name: str | None) -> Any:
    try:
        if path.suffix == ".npy":
            return np.load(path, mmap_mode="r", allow_pickle=False)
        if path.suffix == ".npz":
            with np.load(path, allow_pickle=False) as arrays:
                return arrays[_array_name(path, list(arrays.files), name)]
        if path.suffix == ".safetensors":
            tensors = load_file(path)
            return tensors[_array_name(path, list(tensors), name)]
    except (OSError, ValueError, EOFError, SafetensorError) as error:
        raise DataError(f"{path}: cannot read maps ({error}); save them again as .npy or .safetensors") from error
    raise DataError(f"{path}: maps must be a .npy, .npz or .safetensors file")


def _array_name(path: Path, names: list[str], requested: str | None) -> str:
    if requested is None and len(names) == 1:
        return names[0]
    if requested not in names:
        raise InputError(f"{path} holds the arrays {', '.join(names)}: choose one with name=")
    return requested
