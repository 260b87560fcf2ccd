"""Example images of the report, small enough to be mailed."""

import base64
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from roadworthy.report.examples import Answer, AnsweredImage, Example, Pixels, Removal
from roadworthy.report.tables import setting_title

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


MARKED = (0.90, 0.36, 0.0)
"""color of a method's pixels on the gray image"""
HOLE = (0.93, 0.0, 0.55)
"""color of removed pixels: natural images hardly have it"""


@dataclass(frozen=True, eq=False)
class Step:
    """One picture of the way from an image to the model's answer."""

    caption: str
    alt: str
    picture: Picture
    answer: Answer | None = None


def steps(example: AnsweredImage, method: str) -> list[Step]:
    """The pixels that a method calls most relevant, the image without them, imputed; and without the least relevant."""
    found: list[Step] = []
    for removal in example.removals[method]:
        share = f"{100 * removal.fraction:.0f}\N{NO-BREAK SPACE}%"
        if removal.order == "morf":
            found += [
                _step(example, method, f"its top {share}", _marked(example.image, removal)),
                _step(example, method, "removed", _with_holes(example.image, removal)),
                _step(example, method, "imputed", removal.imputed, removal.answer),
            ]
        else:
            found.append(_step(example, method, f"without its least relevant {share}", removal.imputed, removal.answer))
    return found


def _step(example: AnsweredImage, method: str, caption: str, pixels: Pixels, answer: Answer | None = None) -> Step:
    return Step(caption, f"{example.title}, {method}: {caption}", Picture(caption, pixels), answer)


def _marked(image: Pixels, removal: Removal) -> Pixels:
    gray = np.clip(image, 0, 1).mean(axis=0, keepdims=True) * 0.6 + 0.35
    return _painted(np.repeat(gray, 3, axis=0), removal, MARKED)


def _with_holes(image: Pixels, removal: Removal) -> Pixels:
    return _painted(image if len(image) == 3 else np.repeat(image[:1], 3, axis=0), removal, HOLE)


def _painted(image: Pixels, removal: Removal, color: tuple[float, float, float]) -> Pixels:
    paint = np.asarray(color, dtype=np.float32)[:, None, None]
    return np.where(removal.removed[None], paint, image).astype(np.float32)


def answer_text(answer: Answer) -> str:
    """
    >>> answer_text(Answer("ship", True, "ship", 0.981)), answer_text(Answer("car", False, "ship", 0.12))
    ('✓ ship 98\\xa0%', '✗ car (ship 12\\xa0%)')
    """
    mark, share = "✓" if answer.correct else "✗", f"{100 * answer.probability:.0f}\N{NO-BREAK SPACE}%"
    if answer.name == answer.target:
        return f"{mark} {answer.name} {share}"
    return f"{mark} {answer.name} ({answer.target} {share})"


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
                f"{setting_title(imputer)}; {leader} removes {_ORDERS.get(order, order)}",
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
