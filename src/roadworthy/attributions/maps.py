"""From the output of a method to maps `(n, h, w)`: check, put channels first, reduce them, upsample.

>>> maps = torch.tensor([[[[1.0]], [[-3.0]]]])
>>> [reduced(maps, rule).item() for rule in ("sum", "abs_sum", "max_abs")]
[-2.0, 4.0, 3.0]
"""

import warnings
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import interpolate

from roadworthy.attributions.layouts import channels_first
from roadworthy.core.device import CPU
from roadworthy.core.errors import InputError, ShapeError, UpsampledMapsWarning
from roadworthy.core.partitions import Partition
from roadworthy.core.types import Ids, Images, Maps

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


def as_maps(
    name: str,
    maps: Any,
    ids: Ids,
    images: Images,
    channel_reduction: ChannelReduction = "sum",
    units: Partition | None = None,
) -> Maps:
    """Check what method `name` returned for these images and convert it to maps `(n, h, w)` on the CPU.

    They are float32; float64 where float32 would make different values equal, and so lose their order. Maps of the grid
    of `units` have a value for each patch, which its pixels get as it is; other small maps are upsampled.
    """
    if not isinstance(maps, Tensor | np.ndarray):
        raise ShapeError(f"{name} returned a {type(maps).__name__}: return a tensor of maps (n, h, w)")
    if np.ma.is_masked(maps):
        raise InputError(f"{name}: masked values have no rank: fill them, as in maps.filled(0)")
    maps = channels_first(name, torch.as_tensor(maps).detach().cpu(), images.shape)
    if maps.ndim not in (3, 4) or len(maps) != len(images) or maps.shape[1:-2] not in ((), (1,), images.shape[1:2]):
        raise ShapeError(
            f"{name}: maps {tuple(maps.shape)} do not fit images {tuple(images.shape)}: "
            "give one map per image, (n, h, w), (n, c, h, w) or (n, h, w, c)"
        )
    if maps.is_complex():
        raise InputError(f"{name}: complex maps have no order: give real values, such as maps.abs()")
    maps = maps if maps.ndim == 3 else reduced(maps, channel_reduction)
    if (bad := maps.isnan().flatten(1).any(dim=1)).any():
        raise InputError(f"{name}: NaN in the maps of images {abbreviated(ids[bad])}: fix or leave out these images")
    floats = _as_floats(name, maps)
    if maps.shape[-2:] == images.shape[-2:]:
        if units is not None and units.adds:
            _check_finite(name, floats, ids, "cannot be averaged or added in a unit")
        return floats  # infinite values have a rank
    if units is not None and tuple(maps.shape[-2:]) == units.grid:
        return units.to(CPU).painted(floats.flatten(1))
    # Interpolation would spread infinite values, and inf − inf is NaN.
    _check_finite(name, floats, ids, "are smaller than the images and cannot be upsampled")
    return _upsampled(name, floats, images)


def _check_finite(name: str, maps: Maps, ids: Ids, reason: str) -> None:
    if (bad := maps.isinf().flatten(1).any(dim=1)).any():
        raise InputError(
            f"{name}: infinite values in the maps of images {abbreviated(ids[bad])}, which {reason}: give finite ones"
        )


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


def abbreviated(ids: Ids, limit: int = 5) -> str:
    shown = ", ".join(str(sample) for sample in ids[:limit].tolist())
    return shown + (f" … ({len(ids)} in all)" if len(ids) > limit else "")
