"""What images, labels and ids must be, checked once where they enter the house."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from roadworthy.core.errors import InputError, RangeError, ShapeError
from roadworthy.core.types import Images

Array = Tensor | NDArray[Any]


def check_kind(images: object) -> Array:
    """The same object, if its type, dtype and shape can be images; no pixel is read."""
    if not isinstance(images, Tensor | np.ndarray):
        raise InputError(f"images are a {type(images).__name__}: give one numpy array or tensor (n, c, h, w)")
    _check_dtype(images)
    _check_shape(tuple(images.shape))
    return images


def as_pixels(images: Array) -> Images:
    """A float32 copy on the CPU: whoever writes into it leaves the caller's array alone."""
    if isinstance(images, Tensor):
        return images.detach().to("cpu", torch.float32, copy=True).contiguous()
    return torch.from_numpy(np.array(images, dtype=np.float32, order="C"))


def check_pixels(images: Images, start: int = 0) -> Images:
    """The same images, if every pixel is finite and in [0, 1]; `start` is the position of the first one."""
    low, high = torch.aminmax(images.flatten(1), dim=1)
    bad = ~((low >= 0) & (high <= 1))  # NaN compares false
    if bad.any():
        index = int(bad.nonzero()[0])
        raise RangeError(f"image {start + index} {_complaint(float(low[index]), float(high[index]))}")
    return images


def integers(name: str, values: Any, count: int) -> Tensor:
    """An int64 copy `(count,)` of whole numbers, one per image."""
    array = values.detach().cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)
    if array.ndim != 1 or len(array) != count:
        raise ShapeError(
            f"{name} have shape {array.shape} for {count} images: give one integer per image (one-hot rows: argmax(1))"
        )
    if not np.issubdtype(array.dtype, np.integer):
        raise ShapeError(f"{name} are {array.dtype}: give integers")
    return torch.from_numpy(array.astype(np.int64))


def check_labels(labels: Tensor, classes: Sequence[str] = (), start: int = 0) -> Tensor:
    """The same labels, if they count from 0 and, where the classes are known, name one of them."""
    bad = labels < 0
    if classes:
        bad |= labels >= len(classes)
    if bad.any():
        index = int(bad.nonzero()[0])
        known = f"0 to {len(classes) - 1}" if classes else "0, 1, …"
        raise RangeError(
            f"label {int(labels[index])} of image {start + index}: labels are class indices {known}; "
            "leave all of them out where nobody knows"
        )
    return labels


def check_ids(ids: Tensor) -> Tensor:
    """The same ids, if no two images share one: they key all randomness."""
    values, counts = torch.unique(ids, return_counts=True)
    if len(values) < len(ids):
        repeated = int(values[counts > 1][0])
        raise InputError(f"id {repeated} is given {int(counts.max())} times: ids key the randomness, make them unique")
    return ids


def _check_dtype(images: Array) -> None:
    name = str(images.dtype).removeprefix("torch.")
    if isinstance(images, Tensor):
        floating, whole = images.is_floating_point(), not images.is_complex()
    else:
        floating, whole = np.issubdtype(images.dtype, np.floating), images.dtype.kind in "iub"
    if floating:
        return
    if whole:
        raise RangeError(f"images are {name}, not floats in [0, 1]: divide by 255 first")
    raise ShapeError(f"images are {name}: give floats in [0, 1]")


def _check_shape(shape: tuple[int, ...]) -> None:
    if len(shape) != 4:
        raise ShapeError(
            f"images have shape {shape}, not (n, c, h, w): images[None] for a single one, images[:, None] for gray ones"
        )
    if 0 in shape:
        raise ShapeError(f"images have shape {shape}: nothing to evaluate; give at least one image and one pixel")
    # Eight and more channels are rare; three columns at the end are nearly always colors.
    if shape[3] in (1, 3, 4) and min(shape[1:3]) >= 8:
        raise ShapeError(
            f"images have shape {shape}, which looks like (n, h, w, c): put the channels first, "
            "tensor.permute(0, 3, 1, 2) or array.transpose(0, 3, 1, 2)"
        )


def _complaint(low: float, high: float) -> str:
    if not np.isfinite(low + high):
        return "holds NaN or infinity: give finite pixels in [0, 1]"
    return f"spans [{low:.9g}, {high:.9g}], outside [0, 1]: {_cure(low, high)}"


def _cure(low: float, high: float) -> str:
    if low >= -1e-3 and high <= 1 + 1e-3:
        return "a resampler overshot; use images.clip(0, 1)"
    if low >= 0 and high > 16:  # no usual normalization reaches 16
        return "divide by 255 first"
    return "give pixel-space images and wrap the model, rw.Normalized(model, mean, std)"
