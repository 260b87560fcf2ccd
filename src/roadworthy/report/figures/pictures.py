"""Pictures of what was evaluated: images with pixels removed and filled."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from roadworthy.report.figures.leakage import order_name
from roadworthy.report.figures.style import PAGE, plain, styled

Pixels = NDArray[np.float32]
"""`(c, h, w)` in [0, 1]; values beyond are clipped for display"""


@dataclass(frozen=True, eq=False)
class Scene:
    """One image as it was evaluated."""

    title: str
    image: Pixels
    fractions: tuple[float, ...]
    relevance: Mapping[str, Pixels]
    """method to its ranks as gray levels, white = most relevant"""
    imputer: str
    modified: Mapping[tuple[str, str], Sequence[Pixels]]
    """(method, order) to what that imputer left, fraction by fraction"""
    method: str
    filled: Mapping[str, Sequence[Pixels]]
    """imputer to what it made of the holes of that method, most relevant first"""


@styled
def modified_data(scene: Scene) -> Figure:
    """A row per method; left the most relevant pixels go first, right the least relevant."""
    orders = list(dict.fromkeys(order for _, order in scene.modified))
    rows = [
        [scene.image, scene.relevance[method], *(p for order in orders for p in scene.modified[method, order])]
        for method in scene.relevance
    ]
    shares = [f"{order_name(order)}\n{fraction:.0%}" for order in orders for fraction in scene.fractions]
    figure = _table(rows, ["", "map", *shares], list(scene.relevance))
    figure.suptitle(plain(f"{scene.title}; share of pixels removed, filled by: {scene.imputer}"))
    return figure


@styled
def imputations(scenes: Sequence[Scene]) -> Figure:
    """Some images, a row per imputer, a column per share removed."""
    rows = [[scene.image, *pictures] for scene in scenes for pictures in scene.filled.values()]
    names = [imputer for scene in scenes for imputer in scene.filled]
    figure = _table(rows, ["original", *(f"{fraction:.0%}" for fraction in scenes[0].fractions)], names)
    figure.suptitle(plain(f"share of pixels removed, most relevant first by {scenes[0].method}; a row per imputer"))
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
        panel.set_ylabel(plain(text), rotation=0, ha="right", va="center")
    return figure


def _show(panel: Axes, pixels: Pixels) -> None:
    shown = pixels.transpose(1, 2, 0) if len(pixels) == 3 else pixels.mean(axis=0)
    panel.imshow(np.clip(shown, 0, 1), cmap="gray", vmin=0, vmax=1, interpolation="nearest")
    panel.set_xticks([])
    panel.set_yticks([])
    panel.grid(False)
    panel.spines[:].set_visible(False)
