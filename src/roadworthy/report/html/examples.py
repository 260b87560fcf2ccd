"""Example images of the report, small enough to be mailed."""

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

MAX_SIDE = 128
"""pixels along the longer side; larger pictures are scaled down"""


@dataclass(frozen=True, eq=False)
class Picture:
    caption: str
    pixels: NDArray[np.float32]
    """`(c, h, w)`, clipped to [0, 1] for display"""


@dataclass(frozen=True, eq=False)
class Strip:
    """A row of pictures."""

    title: str
    pictures: Sequence[Picture]


@dataclass(frozen=True, eq=False)
class Example:
    """One image: a strip of the image and its maps, then one strip of imputed images per setting."""

    title: str
    strips: Sequence[Strip]


def data_url(picture: Picture) -> str:
    """The picture as a data URL: a lossless PNG, or a JPEG if it had to be scaled down."""
    pixels = np.round(np.clip(picture.pixels, 0, 1) * 255).astype(np.uint8)
    image = Image.fromarray(pixels[0] if len(pixels) != 3 else pixels.transpose(1, 2, 0))
    kind, options = ("JPEG", {"quality": 85}) if max(image.size) > MAX_SIDE else ("PNG", {"optimize": True})
    image.thumbnail((MAX_SIDE, MAX_SIDE), Image.Resampling.BOX)
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return f"data:image/{kind.lower()};base64," + base64.b64encode(buffer.getvalue()).decode()
