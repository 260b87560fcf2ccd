"""Images with removed and imputed pixels, as they were evaluated."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from roadworthy.report.figures.leakage import order_name
from roadworthy.report.figures.style import PAGE, literal, styled

Pixels = NDArray[np.float32]
"""`(c, h, w)`, clipped to [0, 1] for display"""


@dataclass(frozen=True, eq=False)
class Scene:
    """One image, its maps, and imputed versions of it."""

    title: str
    image: Pixels
    fractions: tuple[float, ...]
    relevance: Mapping[str, Pixels]
    """method to its map as gray levels, white = most relevant"""
    imputer: str
    modified: Mapping[tuple[str, str], Sequence[Pixels]]
    """(method, order) to the images imputed with `imputer`, by fraction"""
    method: str
    imputed: Mapping[str, Sequence[Pixels]]
    """imputer to the images imputed with it by fraction, pixels removed in MoRF order of `method`"""


@styled
def modified_data(scene: Scene) -> Figure:
    """One row per method: the image, its map, and imputed images by order and fraction."""
    orders = list(dict.fromkeys(order for _, order in scene.modified))
    rows = [
        [scene.image, scene.relevance[method], *(p for order in orders for p in scene.modified[method, order])]
        for method in scene.relevance
    ]
    labels = [f"{order_name(order)}\n{fraction:.0%}" for order in orders for fraction in scene.fractions]
    figure = _table(rows, ["", "map", *labels], list(scene.relevance))
    figure.suptitle(literal(f"{scene.title}; fraction of pixels removed, imputed with {scene.imputer}"))
    return figure


@styled
def imputations(scenes: Sequence[Scene]) -> Figure:
    """One row per image and imputer, one column per fraction removed."""
    rows = [[scene.image, *pictures] for scene in scenes for pictures in scene.imputed.values()]
    names = [imputer for scene in scenes for imputer in scene.imputed]
    figure = _table(rows, ["original", *(f"{fraction:.0%}" for fraction in scenes[0].fractions)], names)
    figure.suptitle(
        literal(f"fraction of pixels removed, most relevant first by {scenes[0].method}; one row per imputer")
    )
    return figure


def _table(rows: Sequence[Sequence[Pixels]], above: Sequence[str], beside: Sequence[str]) -> Figure:
    height, width = rows[0][0].shape[-2:]
    cell = min(0.75, (PAGE - 0.6) / len(above))
    size = (len(above) * cell + 0.6, len(rows) * cell * height / width + 0.5)
    figure = Figure(figsize=size, layout="constrained")
    figure.get_layout_engine().set(w_pad=0.02, h_pad=0.02, wspace=0.01, hspace=0.01)  # type: ignore[union-attr, call-arg]
    panels = figure.subplots(len(rows), len(above), squeeze=False)
    for panel, pixels in zip(panels.flat, (pixels for row in rows for pixels in row), strict=True):
        _show(panel, pixels)
    for panel, text in zip(panels[0], above, strict=True):
        panel.set_title(text, fontsize=7)
    for panel, text in zip(panels[:, 0], beside, strict=True):
        panel.set_ylabel(literal(text), rotation=0, ha="right", va="center")
    return figure


def _show(panel: Axes, pixels: Pixels) -> None:
    shown = pixels.transpose(1, 2, 0) if len(pixels) == 3 else pixels.mean(axis=0)
    panel.imshow(np.clip(shown, 0, 1), cmap="gray", vmin=0, vmax=1, interpolation="nearest")
    panel.set_xticks([])
    panel.set_yticks([])
    panel.grid(False)
    panel.spines[:].set_visible(False)
