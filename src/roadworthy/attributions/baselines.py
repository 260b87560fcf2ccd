"""Baselines: the image that a method starts from, given in pixel space and then normalized like every image.

So the same color means the same, wherever a model normalizes. By default it is the mean by which the model normalizes,
the paper's zero in normalized space; gray .5 for a model whose normalization mean is 0, which would be black.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, cast, final, get_args

import numpy as np
import torch
from torch import Tensor

from roadworthy.attributions.controls import blurred
from roadworthy.core.errors import InputError, RangeError, ShapeError
from roadworthy.core.types import Images, Model

Named = Literal["mean", "black", "blur"]
BaselineLike = Named | float | Sequence[float] | np.ndarray | Tensor
""""mean", "black", "blur" (each image, blurred), a color (one number, or one per channel) or an image `(c, h, w)`."""

GRAY = 0.5
BLUR = 0.1
"""standard deviation relative to the image's shorter side"""


@final
@dataclass(frozen=True, eq=False)
class BaselineImage:
    """An image `(c, h, w)` in [0, 1] that compares by value, so that equal methods share their computation."""

    pixels: Tensor

    @cached_property
    def _content(self) -> tuple[Any, ...]:
        return tuple(self.pixels.shape), self.pixels.numpy().tobytes()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BaselineImage) and self._content == other._content

    def __hash__(self) -> int:
        return hash(self._content)


Baseline = Named | tuple[float, ...] | BaselineImage
"""A checked `BaselineLike`; a color is a tuple of one number, or of one per channel."""


def checked_baseline(baseline: Any) -> Baseline:
    if isinstance(baseline, BaselineImage):
        return baseline
    if isinstance(baseline, str):
        if baseline not in get_args(Named):
            raise InputError(f"baseline={baseline!r}: choose 'mean', 'black' or 'blur', or give a color or an image")
        return cast(Named, baseline)
    try:
        values = torch.as_tensor(baseline, dtype=torch.float32).detach().cpu()
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(
            f"baseline={baseline!r}: give 'mean', 'black', 'blur', a color such as (0.5, 0.5, 0.5) or an image"
        ) from error
    if values.ndim not in (0, 1, 3) or not values.numel():
        raise ShapeError(f"baseline of shape {tuple(values.shape)}: give one value per channel, or an image (c, h, w)")
    if not ((values >= 0) & (values <= 1)).all():
        raise RangeError(
            f"baseline with values from {values.min():g} to {values.max():g}: give it in pixel space, in [0, 1], "
            "as before normalization"
        )
    if values.ndim == 3:
        return BaselineImage(values.contiguous().clone())
    return tuple(values.flatten().tolist())


def has_mean(model: Model, images: Images) -> bool:
    """The model shows a normalization with a mean: black is not its zero."""
    return bool(model.normalize(torch.zeros_like(images[:1])).any())


def baseline_inputs(baseline: BaselineLike | Baseline, model: Model, images: Images) -> Tensor:
    """The baseline of these images in the network's input space, `(n, c, h, w)`, n = 1 if it is the same for all."""
    checked = checked_baseline(baseline)
    if checked == "mean" and has_mean(model, images):
        return torch.zeros_like(images[:1])
    return model.normalize(_pixels(checked, images).to(images))


def _pixels(baseline: Baseline, images: Images) -> Images:
    shape = images.shape[1:]
    if baseline == "blur":
        return blurred(images, BLUR * min(shape[-2:]))
    if isinstance(baseline, BaselineImage):
        if baseline.pixels.shape != shape:
            raise ShapeError(f"baseline of shape {tuple(baseline.pixels.shape)}: the images are {tuple(shape)}")
        return baseline.pixels[None]
    color = {"mean": (GRAY,), "black": (0.0,)}[baseline] if isinstance(baseline, str) else baseline
    if len(color) not in (1, shape[0]):
        raise ShapeError(f"baseline={color}: {len(color)} channels, the images have {shape[0]}")
    return torch.tensor(color).reshape(1, -1, 1, 1).expand(1, *shape)


def baseline_of(method: Any) -> Baseline | None:
    """The baseline that a method uses, or the one that it is computed from; None if it has none that is known here."""
    for _ in range(8):  # a copy of an ensemble over a base; a user's objects may refer to each other
        baseline = getattr(method, "baseline", None)
        if baseline in get_args(Named) if isinstance(baseline, str) else isinstance(baseline, tuple | BaselineImage):
            return cast(Baseline, baseline)
        source = getattr(method, "source", None)
        method = getattr(method, "base", None) if source is None else source
    return None


def described_baseline(baseline: Baseline, with_mean: bool) -> str:
    """For people; `with_mean`: the model shows a normalization mean.

    >>> described_baseline("mean", True), described_baseline("mean", False), described_baseline((0.2, 0.4, 1.0), True)
    ('normalization mean', 'gray .5 (the model shows no normalization)', 'color (0.2, 0.4, 1)')
    """
    if baseline == "mean":
        return "normalization mean" if with_mean else "gray .5 (the model shows no normalization)"
    if isinstance(baseline, str):
        return {"black": "black", "blur": "each image, blurred"}[baseline]
    if isinstance(baseline, BaselineImage):
        return "an image"
    return f"color ({', '.join(f'{value:g}' for value in baseline)})"
