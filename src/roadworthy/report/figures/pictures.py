"""Images with removed and imputed pixels, as they were evaluated."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from roadworthy.report.examples import Example, Pixels
from roadworthy.report.figures.style import PAGE, literal, order_name, styled


@styled
def modified_data(example: Example) -> Figure:
    """One row per method: the image, its map, and images imputed with the first imputer by order and fraction."""
    imputer = next(imputer for _, _, imputer in example.imputed)
    orders = list(dict.fromkeys(order for _, order, _ in example.imputed))
    rows = [
        [example.image, pixels, *(p for order in orders for p in example.imputed[method, order, imputer])]
        for method, pixels in example.relevance.items()
    ]
    labels = [f"{order_name(order)}\n{fraction:.0%}" for order in orders for fraction in example.fractions]
    figure = _table(rows, ["", "map", *labels], list(example.relevance))
    figure.suptitle(literal(f"{example.title}; fraction of pixels removed, imputed with {imputer}"))
    return figure


@styled
def imputations(examples: Sequence[Example]) -> Figure:
    """One row per image and imputer, one column per fraction removed, in the first order of the leading method."""
    method, order, _ = next(iter(examples[0].imputed))
    settings = [setting for setting in examples[0].imputed if setting[:2] == (method, order)]
    rows = [[example.image, *example.imputed[setting]] for example in examples for setting in settings]
    names = [imputer for _ in examples for _, _, imputer in settings]
    figure = _table(rows, ["original", *(f"{fraction:.0%}" for fraction in examples[0].fractions)], names)
    figure.suptitle(literal(f"fraction of pixels removed, {order_name(order)} of {method}; one row per imputer"))
    return figure


def _table(rows: Sequence[Sequence[Pixels]], above: Sequence[str], beside: Sequence[str]) -> Figure:
    height, width = rows[0][0].shape[-2:]
    cell = min(0.75, (PAGE - 0.6) / len(above))
    size = (len(above) * cell + 0.6, len(rows) * cell * height / width + 0.5)
    figure = Figure(figsize=size, layout="constrained")
    figure.get_layout_engine().set(w_pad=0.02, h_pad=0.02, wspace=0.01, hspace=0.01)  # type: ignore[union-attr, call-arg]
    panels = figure.subplots(len(rows), len(above), squeeze=False)
    for panel, pixels in zip(panels.flat, (pixels for row in rows for pixels in row), strict=True):
        show(panel, pixels)
    for panel, text in zip(panels[0], above, strict=True):
        panel.set_title(text, fontsize=7)
    for panel, text in zip(panels[:, 0], beside, strict=True):
        panel.set_ylabel(literal(text), rotation=0, ha="right", va="center")
    return figure


def show(panel: Axes, pixels: Pixels) -> None:
    """A picture without axes."""
    shown = pixels.transpose(1, 2, 0) if len(pixels) == 3 else pixels.mean(axis=0)
    panel.imshow(np.clip(shown, 0, 1), cmap="gray", vmin=0, vmax=1, interpolation="nearest")
    panel.set_xticks([])
    panel.set_yticks([])
    panel.grid(False)
    panel.spines[:].set_visible(False)
