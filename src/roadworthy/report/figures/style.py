"""How figures look: legible at the width of a column, no more ink than the data need; and how they are written."""

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from roadworthy.core.files import write_atomically
from roadworthy.report.palette import Look

PAGE = 6.75
"""inches: the width of a page's text in the paper's format; two columns of 3.25"""
COLUMN = 3.25
styled = rc_context(
    {
        "font.family": "DejaVu Sans",  # matplotlib brings it along: the same bytes everywhere
        "font.size": 7.5,
        "axes.titlesize": 7.5,
        "axes.labelsize": 7.5,
        "xtick.labelsize": 7,
        "ytick.labelsize": 7,
        "legend.fontsize": 7,
        "legend.frameon": False,
        "legend.handlelength": 2.6,
        "figure.titlesize": 8,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.linewidth": 0.6,
        "axes.grid": True,
        "grid.alpha": 0.25,
        "grid.linewidth": 0.5,
        "lines.linewidth": 1.2,
        "lines.markersize": 2.6,
        "pdf.fonttype": 42,
        "svg.hashsalt": "roadworthy",
        "svg.fonttype": "path",
    }
)
"""Put around every function that makes a figure, whose text takes its size when it is made, and that writes one."""

ORDERS = {"morf": "MoRF (lower is better)", "lerf": "LeRF (higher is better)"}
EVALUATORS = {"no-retrain": "no retraining", "retrain": "retrained", "fine-tuned": "fine-tuned"}
REMOVED = "share of pixels removed"

# Imputers are told apart without color, which belongs to the methods.
_INKS = (("-", "o", "#000000"), ("--", "s", "#000000"), (":", "^", "#000000"), ("-.", "D", "#555555"))
_FORMATS: Mapping[str, Mapping[str, Any]] = {
    "pdf": {"metadata": {"CreationDate": None}},
    "svg": {"metadata": {"Date": None}},
    "png": {"dpi": 200},
}


def plain(text: object) -> str:
    """Text that matplotlib takes as it is: "$" and a leading "_" mean something to it."""
    return "\u200b" + str(text).replace("$", r"\$")


def grid(rows: int, columns: int, height: float, width: float = PAGE) -> tuple[Figure, list[list[Axes]]]:
    """A figure of panels that share their vertical axis; `height` is that of one row."""
    figure = Figure(figsize=(width, height * rows + 0.45), layout="constrained")
    return figure, figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).tolist()


def ink(names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Line styles for what is no method."""
    keys = ("linestyle", "marker", "color")
    return {name: dict(zip(keys, _INKS[i % len(_INKS)], strict=True)) for i, name in enumerate(names)}


def pen(look: Look) -> dict[str, Any]:
    """A method's line; points on a dashed one would hide its dashes."""
    dashed = {"linestyle": (0, look.dash), "linewidth": 1.0}
    return {"color": look.color, **(dashed if look.dash else {"linestyle": "-", "marker": "o"})}


def draw(panel: Axes, rows: pd.DataFrame, column: str = "accuracy", band: bool = False, **drawn: Any) -> None:
    """One curve by fraction, with the band of its interval if asked for."""
    rows = rows.sort_values("fraction")
    panel.plot(rows["fraction"], rows[column], **drawn)
    if band:
        panel.fill_between(rows["fraction"], rows["low"], rows["high"], color=drawn["color"], alpha=0.12, linewidth=0)


def by_share(panels: Sequence[Sequence[Axes]], label: str, top: float | None = 1.02) -> None:
    """Name the axes of a grid of panels whose horizontal one is the share removed."""
    for row in panels:
        row[0].set_ylabel(label)
        for panel in row:
            panel.xaxis.set_major_formatter(PercentFormatter(1, decimals=0))
            panel.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
            panel.set_ylim(0, top)
    for panel in panels[-1]:
        panel.set_xlabel(REMOVED)


def legend(figure: Figure, panels: Sequence[Sequence[Axes]]) -> None:
    """One legend below all panels, each name once."""
    found = {}
    for panel in (panel for row in panels for panel in row):
        handles, labels = panel.get_legend_handles_labels()
        found.update({label: handle for handle, label in zip(handles, labels, strict=True) if label not in found})
    wide = max((len(label) for label in found), default=1)
    columns = int(np.clip(figure.get_figwidth() * 14 // (wide + 7), 1, max(1, len(found))))
    figure.legend(found.values(), found.keys(), loc="outside lower center", ncols=columns)


@styled
def write_figure(figure: Figure, folder: Path, name: str) -> list[Path]:
    """As PDF, SVG and PNG; the same figure gives the same bytes."""
    paths = []
    for suffix, options in _FORMATS.items():
        buffer = io.BytesIO()
        figure.savefig(buffer, format=suffix, **options)
        paths.append(folder / f"{name}.{suffix}")
        write_atomically(paths[-1], buffer.getvalue())
    return paths
