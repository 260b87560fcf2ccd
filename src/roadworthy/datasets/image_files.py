"""Picture files: decoded with Pillow one batch at a time, framed to one size, scaled to [0, 1]."""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from roadworthy.core.errors import DataError, RangeError, ShapeError
from roadworthy.core.types import Batch, Images
from roadworthy.datasets.subsets import spans

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".webp")
_FORMATS = ("PNG", "JPEG", "BMP", "WEBP")


@final
@dataclass(frozen=True)
class Frame:
    """Resize the shorter side to `resize` (bilinear, antialiased), then cut `crop` × `crop` from the center."""

    resize: int | None = None
    crop: int | None = None

    def __post_init__(self) -> None:
        for name, side in (("resize", self.resize), ("crop", self.crop)):
            if side is not None and side < 1:
                raise RangeError(f"{name}={side}: it must be at least 1 pixel")

    def __call__(self, picture: Image.Image) -> Image.Image:
        return _cropped(_resized(picture, self.resize), self.crop)


def picture_batches(entries: Sequence[tuple[Path, int]], frame: Frame, size: int) -> Iterator[Batch]:
    """Batches of the pictures at `(path, label)`; an id is the position in `entries`."""
    shape: tuple[int, ...] | None = None
    for span in spans(len(entries), size):
        pictures = [read(path, frame) for path, _ in entries[span]]
        shape = shape or pictures[0].shape
        for picture, (path, _) in zip(pictures, entries[span], strict=True):
            if picture.shape != shape:
                raise ShapeError(
                    f"{entries[0][0]} is {_size(shape)} pixels, {path} {_size(picture.shape)}: images of one dataset "
                    "have one size; give crop=, or resize= and crop="
                )
        labels = torch.tensor([label for _, label in entries[span]], dtype=torch.int64)
        yield Batch(torch.arange(span.start, span.stop), scaled(np.stack(pictures)), labels)


def pictures_at(entries: Sequence[tuple[Path, int]], frame: Frame, rows: Sequence[int]) -> Batch:
    """The pictures at these places of `entries`, and no others, are read."""
    (batch,) = picture_batches([entries[row] for row in rows], frame, len(rows))
    return replace(batch, ids=torch.tensor(rows))


def read(path: Path, frame: Frame) -> NDArray[np.uint8]:
    """One picture file as RGB `(h, w, 3)`."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(path, formats=_FORMATS) as picture:
                plain = rgb(picture)
    except FileNotFoundError:
        raise DataError(f"{path} is missing: restore it, or fetch the data again") from None
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise DataError(f"{path} is too large to decode safely: {error}") from error
    except (OSError, SyntaxError, ValueError) as error:
        raise DataError(f"{path} cannot be decoded: {error}") from error
    try:
        return np.asarray(frame(plain))
    except ShapeError as error:
        raise ShapeError(f"{path}: {error}") from None


def rgb(picture: Image.Image) -> Image.Image:
    """The picture in 8-bit RGB: gray is repeated, alpha dropped, EXIF rotation ignored, as torchvision does."""
    if picture.mode[0] in "IF":
        raise ShapeError(f"mode {picture.mode} has more than 8 bits per channel: save it as 8-bit RGB")
    # Pillow warns when a palette with transparency goes straight to RGB.
    return (picture.convert("RGBA") if picture.mode == "P" else picture).convert("RGB")


def scaled(pictures: NDArray[Any]) -> Images:
    """Bytes `(n, h, w, c)` as images `(n, c, h, w)` in [0, 1]."""
    channels_first = np.ascontiguousarray(pictures.transpose(0, 3, 1, 2), dtype=np.float32)
    return torch.from_numpy(channels_first).div_(255)


def _resized(picture: Image.Image, side: int | None) -> Image.Image:
    if side is None:
        return picture
    width, height = (max(1, side * length // min(picture.size)) for length in picture.size)
    return picture.resize((width, height), Image.Resampling.BILINEAR)


def _cropped(picture: Image.Image, side: int | None) -> Image.Image:
    if side is None:
        return picture
    width, height = picture.size
    if min(picture.size) < side:
        raise ShapeError(f"{width}×{height} pixels cannot be cropped to {side}×{side}: give resize={side} too")
    left, top = round((width - side) / 2), round((height - side) / 2)
    return picture.crop((left, top, left + side, top + side))


def _size(shape: tuple[int, ...]) -> str:
    return f"{shape[1]}×{shape[0]}"
