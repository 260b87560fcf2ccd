"""Where the channels of a map are: `(n, c, h, w)` as in torch, or `(n, h, w, c)` as in TensorFlow and shap."""

from typing import Literal

from torch import Tensor

from roadworthy.core.errors import ShapeError

Layout = Literal["nchw", "nhwc"]


def channels_first(name: str, maps: Tensor, images: tuple[int, ...], layout: Layout | None = None) -> Tensor:
    """Maps `(n, h, w, c)` as `(n, c, h, w)`; others as they are. Two possible readings raise a ShapeError.

    >>> import torch
    >>> channels_first("mine", torch.zeros(2, 8, 8, 3), (2, 3, 8, 8)).shape
    torch.Size([2, 3, 8, 8])
    """
    if maps.ndim != 4 or (layout or _layout(name, tuple(maps.shape), images)) == "nchw":
        return maps
    return maps.permute(0, 3, 1, 2)


def _layout(name: str, maps: tuple[int, ...], images: tuple[int, ...]) -> Layout:
    """The reading that fits the images: at their size, or else smaller, as class activation maps are."""
    _, first, second, third = maps
    sizes: dict[Layout, tuple[int, tuple[int, int]]] = {
        "nchw": (first, (second, third)),
        "nhwc": (third, (first, second)),
    }
    channels, height, width = images[1:]
    fitting = {
        layout: size
        for layout, (count, size) in sizes.items()
        if count in (1, channels) and _within(size, height, width)
    }
    exact = [layout for layout, size in fitting.items() if size == (height, width)]
    # A grid of 7×7 for a square image is likelier than one row of 7.
    alike = [layout for layout, size in fitting.items() if abs(size[0] * width - size[1] * height) < max(height, width)]
    candidates = exact or alike or list(fitting)
    if len(candidates) > 1:
        raise ShapeError(
            f"{name}: maps {maps} can be (n, c, h, w) or (n, h, w, c) for images {tuple(images)}: give (n, h, w), or "
            'rw.attributions.PrecomputedMaps(maps, layout="nchw") or "nhwc"'
        )
    return candidates[0] if candidates else "nchw"  # what does not fit at all is refused by the caller


def _within(size: tuple[int, int], height: int, width: int) -> bool:
    return size[0] <= height and size[1] <= width
