"""Rows of pictures, small enough to be mailed."""

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

LARGEST = 128
"""pixels along the longer side; larger pictures are shown smaller"""


@dataclass(frozen=True, eq=False)
class Picture:
    caption: str
    pixels: NDArray[np.float32]
    """`(c, h, w)` in [0, 1]; values beyond are clipped for display"""


@dataclass(frozen=True, eq=False)
class Strip:
    """A row of pictures."""

    title: str
    pictures: Sequence[Picture]


@dataclass(frozen=True, eq=False)
class Example:
    """One image: itself with its maps, then what is left of it, a strip per setting."""

    title: str
    strips: Sequence[Strip]


def data_url(picture: Picture) -> str:
    """The picture as text: PNG, which keeps every pixel, or JPEG where it had to be made smaller."""
    pixels = np.round(np.clip(picture.pixels, 0, 1) * 255).astype(np.uint8)
    image = Image.fromarray(pixels[0] if len(pixels) != 3 else pixels.transpose(1, 2, 0))
    kind, options = ("JPEG", {"quality": 85}) if max(image.size) > LARGEST else ("PNG", {"optimize": True})
    image.thumbnail((LARGEST, LARGEST), Image.Resampling.BOX)
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return f"data:image/{kind.lower()};base64," + base64.b64encode(buffer.getvalue()).decode()
