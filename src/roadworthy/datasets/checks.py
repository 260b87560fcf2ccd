"""Checks of images, labels and ids, done once where they enter the library."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from roadworthy.core.errors import InputError, RangeError, ShapeError
from roadworthy.core.types import Batch, Dataset, Images

Array = Tensor | NDArray[Any]


def check_kind(images: object) -> Array:
    """Return `images` if type, dtype and shape are valid; no pixel is read."""
    if not isinstance(images, Tensor | np.ndarray):
        raise InputError(
            f"images are a {type(images).__name__}: give one numpy array or tensor (n, c, h, w), or PIL images"
        )
    _check_dtype(images)
    _check_shape(tuple(images.shape))
    return images


def as_pixels(images: Array) -> Images:
    """A float32 copy on the CPU, bytes divided by 255; writing into it does not affect the caller's array.

    Copied by numpy, in one thread: torch's threads would go on waiting actively, on the cores that the solver needs.
    """
    is_bytes = images.dtype in (torch.uint8, np.uint8)
    if isinstance(images, Tensor):
        known = torch.float32 if images.dtype == torch.bfloat16 else images.dtype  # numpy has no bfloat16
        images = images.detach().to("cpu", known).numpy()
    pixels = np.array(images, dtype=np.float32, order="C")
    if is_bytes:
        pixels /= 255
    return torch.from_numpy(pixels)


def check_pixels(images: Images, start: int = 0) -> Images:
    """Return `images` if every pixel is finite and in [0, 1]; `start` is the position of the first image."""
    if not len(images):
        return images
    pixels = images.detach().cpu().numpy()  # in one thread, see `as_pixels`
    if pixels.min() >= 0 and pixels.max() <= 1:  # NaN compares false
        return images
    # Per image only now: torch takes fifteen times as long for it.
    lows, highs = torch.aminmax(images.flatten(1), dim=1)
    index = int((~((lows >= 0) & (highs <= 1))).nonzero()[0])
    raise RangeError(f"image {start + index} {_range_problem(float(lows[index]), float(highs[index]))}")


def check_batch(batch: Batch, ids: Tensor) -> None:
    """Raise unless a data set delivered float32 images in [0, 1] for exactly these `ids`, with labels."""
    check_tensors(batch)
    check_kind(batch.images)
    if batch.images.dtype != torch.float32:
        raise ShapeError(f"a batch of the data set has {batch.images.dtype} images: give float32 in [0, 1]")
    if not len(batch.images) == len(batch.labels) == len(batch.ids) == len(ids):
        raise ShapeError(
            f"a batch of the data set has {len(batch.images)} images, {len(batch.labels)} labels and {len(batch.ids)} "
            f"ids where {len(ids)} images were expected: its length, its ids and its batches do not match"
        )
    if not torch.equal(batch.ids, ids):
        row = int((batch.ids != ids).nonzero()[0])
        raise InputError(
            f"the data set delivered image {int(batch.ids[row])} where its ids say {int(ids[row])}: "
            "batches must come in the order of ids, on every pass"
        )
    check_pixels(batch.images, int(ids[0]))


def check_tensors(batch: Batch) -> None:
    if not all(isinstance(part, Tensor) for part in (batch.ids, batch.images, batch.labels)):
        kinds = ", ".join(type(part).__name__ for part in (batch.ids, batch.images, batch.labels))
        raise InputError(f"a batch of the data set holds {kinds}: give tensors of ids, images and labels")


def check_data(data: Dataset) -> None:
    """Raise unless ids are unique and as many as there are images, and the first images are the same when read again.

    Data sets of this library were checked when they were made; this is for those that users implement.
    """
    ids = data.ids
    if not isinstance(ids, Tensor) or ids.dtype != torch.int64 or ids.ndim != 1 or len(ids) != len(data):
        raise ShapeError(f"the data set has {len(data)} images, but its ids are not as many int64 values in a tensor")
    check_ids(ids)
    if not len(ids):
        raise ShapeError("the data set contains no images: give at least one")
    size = min(_READ_TWICE, len(ids))
    for _ in range(2):  # a data set that shuffles or changes its images shows it here (`Verified`)
        check_batch(next(data.batches(size)), ids[:size])


_READ_TWICE = 8
"""images that are read twice before long work starts"""


def integers(name: str, values: Any, count: int) -> Tensor:
    """An int64 copy `(count,)` of integers, one per image."""
    array = values.detach().cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)
    if array.ndim != 1 or len(array) != count:
        raise ShapeError(
            f"{name} have shape {array.shape} for {count} images: give one integer per image (one-hot rows: argmax(1))"
        )
    if not np.issubdtype(array.dtype, np.integer):
        raise ShapeError(f"{name} are {array.dtype}: give integers")
    if array.size and int(array.max()) > np.iinfo(np.int64).max:
        raise RangeError(f"{name}: {int(array.max())} does not fit int64: give smaller integers")
    return torch.from_numpy(array.astype(np.int64))


def class_indices(labels: Any, count: int, classes: Sequence[str] = ()) -> Tensor:
    """An int64 copy `(count,)` of labels, one per image: integers, or names among `classes`."""
    names = labels if isinstance(labels, Tensor) else np.asarray(labels)
    if isinstance(names, Tensor) or names.dtype.kind not in "UTO" or names.ndim != 1:
        return integers("labels", labels, count)
    if not all(isinstance(name, str) for name in names.tolist()):  # objects, such as a column of pandas
        return integers("labels", np.asarray(names.tolist()), count)
    positions = {name: position for position, name in enumerate(classes)}
    unknown = [name for name in names.tolist() if name not in positions]
    if unknown and not classes:
        raise InputError(
            f"labels are names, such as {unknown[0]!r}: say which output of the model each one is, "
            "rw.datasets.Arrays(images, labels, classes=names_in_the_order_of_the_outputs)"
        )
    if unknown:
        raise InputError(f"label {unknown[0]!r} is not one of the {len(classes)} classes: {', '.join(classes[:5])} …")
    return integers("labels", [positions[name] for name in names.tolist()], count)


def check_labels(labels: Tensor, classes: Sequence[str] = (), start: int = 0) -> Tensor:
    """Return `labels` if they are class indices from 0, below the number of classes if that is known."""
    invalid = labels < 0
    if classes:
        invalid |= labels >= len(classes)
    if invalid.any():
        index = int(invalid.nonzero()[0])
        valid = f"0 to {len(classes) - 1}" if classes else "0, 1, …"
        raise RangeError(
            f"label {int(labels[index])} of image {start + index}: labels are class indices {valid}; "
            "give no labels at all if they are unknown"
        )
    return labels


def check_ids(ids: Tensor) -> Tensor:
    """Return `ids` if they are unique: they key all randomness."""
    values, counts = torch.unique(ids, return_counts=True)
    if len(values) < len(ids):
        repeated = int(values[counts > 1][0])
        raise InputError(f"id {repeated} is given {int(counts.max())} times: ids key all randomness and must be unique")
    return ids


def _check_dtype(images: Array) -> None:
    name = str(images.dtype).removeprefix("torch.")
    if isinstance(images, Tensor):
        floating, whole = images.is_floating_point(), not images.is_complex()
    else:
        floating, whole = np.issubdtype(images.dtype, np.floating), images.dtype.kind in "iub"
    if floating or name == "uint8":
        return
    if whole:
        raise RangeError(f"images are {name}, not floats in [0, 1] or uint8: if they are bytes, divide by 255 first")
    raise ShapeError(f"images are {name}: give floats in [0, 1], or uint8")


def _check_shape(shape: tuple[int, ...]) -> None:
    if len(shape) != 4:
        raise ShapeError(
            f"images have shape {shape}, not (n, c, h, w): use images[None] for a single image, "
            "images[:, None] for gray images"
        )
    if 0 in shape:
        raise ShapeError(f"images have shape {shape}: give at least one image and one pixel")
    # Eight or more channels are rare; a last axis of 1, 3 or 4 is nearly always the channels.
    if shape[3] in (1, 3, 4) and min(shape[1:3]) >= 8:
        raise ShapeError(
            f"images have shape {shape}, which looks like (n, h, w, c): put channels first with "
            "tensor.permute(0, 3, 1, 2) or array.transpose(0, 3, 1, 2)"
        )


def _range_problem(low: float, high: float) -> str:
    if not np.isfinite(low + high):
        return "holds NaN or infinity: give finite pixels in [0, 1]"
    return f"spans [{low:.9g}, {high:.9g}], outside [0, 1]: {_advice(low, high)}"


def _advice(low: float, high: float) -> str:
    if low >= -1e-3 and high <= 1 + 1e-3:
        return "resampling overshot; use images.clip(0, 1)"
    if low >= 0 and high > 16:  # no common normalization reaches 16
        return "divide by 255 first"
    return (
        "they look normalized already: leave Normalize out of the transforms (or undo it, images * std + mean) and "
        "wrap the model, rw.Normalized(model, mean, std), so that images are normalized once"
    )
