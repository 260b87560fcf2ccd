"""Image files: decoded with Pillow one batch at a time, resized and cropped, scaled to [0, 1]."""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from roadworthy.core.errors import DataError, InputError, RangeError, ShapeError
from roadworthy.core.files import read_regular
from roadworthy.core.types import Batch, Images
from roadworthy.datasets.subsets import spans

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".webp")
_FORMATS = ("PNG", "JPEG", "BMP", "WEBP")
_LARGEST_FILE = 1 << 30
_LARGEST = 1 << 14
"""Pixels of a side that images are resized to: larger ones would fill the memory."""


@final
@dataclass(frozen=True)
class Frame:
    """Resize the shorter side to `resize` (bilinear, antialiased), then cut `crop` × `crop` from the center."""

    resize: int | None = None
    crop: int | None = None

    def __post_init__(self) -> None:
        for name, side in (("resize", self.resize), ("crop", self.crop)):
            if side is None:
                continue
            if isinstance(side, bool) or not isinstance(side, int):
                raise InputError(f"{name}={side!r}: give a whole number of pixels")
            if not 1 <= side <= _LARGEST:
                raise RangeError(f"{name}={side}: it must be at least 1 pixel, at most {_LARGEST:,}")

    def __call__(self, image: Image.Image) -> Image.Image:
        return _cropped(_resized(image, self.resize), self.crop)


def image_batches(entries: Sequence[tuple[Path, int]], frame: Frame, size: int) -> Iterator[Batch]:
    """Batches of the images at `(path, label)`; ids are positions in `entries`."""
    shape: tuple[int, ...] | None = None
    for span in spans(len(entries), size):
        images = [read(path, frame) for path, _ in entries[span]]
        shape = shape or images[0].shape
        for image, (path, _) in zip(images, entries[span], strict=True):
            if image.shape != shape:
                raise ShapeError(
                    f"{entries[0][0]} is {_size(shape)} pixels, {path} {_size(image.shape)}: all images of a dataset "
                    "must have one size; give crop=, or resize= and crop="
                )
        labels = torch.tensor([label for _, label in entries[span]], dtype=torch.int64)
        yield Batch(torch.arange(span.start, span.stop), scaled(np.stack(images)), labels)


def images_at(entries: Sequence[tuple[Path, int]], frame: Frame, rows: Sequence[int]) -> Batch:
    """The images at these rows of `entries`; no others are read."""
    (batch,) = image_batches([entries[row] for row in rows], frame, len(rows))
    return replace(batch, ids=torch.tensor(rows))


def read(path: Path, frame: Frame) -> NDArray[np.uint8]:
    """One image file as RGB `(h, w, 3)`."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            # The bytes are read first: opening a pipe would wait for somebody to write into it.
            with Image.open(BytesIO(read_regular(path, _LARGEST_FILE)), formats=_FORMATS) as file:
                image = rgb(file)
    except FileNotFoundError:
        raise DataError(f"{path} is missing: restore it, or download the data again") from None
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise DataError(f"{path} is too large to decode safely: {error}") from error
    except ShapeError as error:
        raise DataError(f"{path} cannot be decoded: {error}") from error
    except Exception as error:  # decoders raise what they like on damaged files: OSError, struct.error, IndexError
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"{path} cannot be decoded: {reason}; replace or remove it") from error
    try:
        return np.asarray(frame(image))
    except ShapeError as error:
        raise ShapeError(f"{path}: {error}") from None


def rgb(image: Image.Image) -> Image.Image:
    """The image in 8-bit RGB: gray is repeated, alpha dropped, EXIF rotation ignored, as in torchvision."""
    if image.mode[0] in "IF":
        raise ShapeError(f"mode {image.mode} has more than 8 bits per channel: save it as 8-bit RGB")
    # Pillow warns if a palette with transparency is converted directly to RGB.
    return (image.convert("RGBA") if image.mode == "P" else image).convert("RGB")


def scaled(images: NDArray[Any]) -> Images:
    """Bytes `(n, h, w, c)` as images `(n, c, h, w)` in [0, 1]."""
    channels_first = np.ascontiguousarray(images.transpose(0, 3, 1, 2), dtype=np.float32)
    return torch.from_numpy(channels_first).div_(255)


def _resized(image: Image.Image, side: int | None) -> Image.Image:
    if side is None:
        return image
    width, height = (max(1, side * length // min(image.size)) for length in image.size)
    return image.resize((width, height), Image.Resampling.BILINEAR)


def _cropped(image: Image.Image, side: int | None) -> Image.Image:
    if side is None:
        return image
    width, height = image.size
    if min(image.size) < side:
        raise ShapeError(f"{width}×{height} pixels cannot be cropped to {side}×{side}: give resize={side} too")
    left, top = round((width - side) / 2), round((height - side) / 2)
    return image.crop((left, top, left + side, top + side))


def _size(shape: tuple[int, ...]) -> str:
    return f"{shape[1]}×{shape[0]}"
