"""Example images of the report, small enough to be mailed."""

import base64
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from roadworthy.report.examples import Example

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


_ORDERS = {"morf": "most relevant first (MoRF)", "lerf": "least relevant first (LeRF)"}


def strips(example: Example) -> list[Strip]:
    """The image with its maps, then one strip of imputed images per order and imputer of the leading method."""
    leader = next(iter(example.relevance))
    maps = [Picture(name, pixels) for name, pixels in example.relevance.items()]
    shown = {setting[1:]: series for setting, series in example.imputed.items() if setting[0] == leader}
    return [
        Strip("The image and its maps", [Picture("original", example.image), *maps]),
        *(
            Strip(
                f"Imputed with {imputer}; {leader} removes {_ORDERS.get(order, order)}",
                [
                    Picture(f"{fraction:.0%} removed", pixels)
                    for fraction, pixels in zip(example.fractions, series, strict=True)
                ],
            )
            for (order, imputer), series in sorted(shown.items(), key=lambda entry: _place(entry[0], shown))
        ),
    ]


def _place(setting: tuple[str, str], shown: Mapping[tuple[str, str], object]) -> int:
    """Imputer by imputer."""
    orders, imputers = ([*dict.fromkeys(key[end] for key in shown)] for end in (0, 1))
    return imputers.index(setting[1]) * len(orders) + orders.index(setting[0])


def data_url(picture: Picture) -> str:
    """The picture as a data URL: a lossless PNG, or a JPEG if it had to be scaled down."""
    pixels = np.round(np.clip(picture.pixels, 0, 1) * 255).astype(np.uint8)
    image = Image.fromarray(pixels[0] if len(pixels) != 3 else pixels.transpose(1, 2, 0))
    kind, options = ("JPEG", {"quality": 85}) if max(image.size) > MAX_SIDE else ("PNG", {"optimize": True})
    image.thumbnail((MAX_SIDE, MAX_SIDE), Image.Resampling.BOX)
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return f"data:image/{kind.lower()};base64," + base64.b64encode(buffer.getvalue()).decode()
