"""The style of all figures, legible at the width of a column; and how they are written."""

import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from roadworthy.core.files import write_atomically
from roadworthy.core.text import printable
from roadworthy.report.palette import Look

PAGE = 6.75
"""inches: the text width of the paper's format; two columns of 3.25"""
COLUMN = 3.25
styled = rc_context(
    {
        "font.family": "DejaVu Sans",  # shipped with matplotlib: the same bytes everywhere
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
        "svg.fonttype": "none",  # text stays text: it can be edited and searched
        "figure.autolayout": False,  # both would choose a layout engine where none is wanted
        "figure.constrained_layout.use": False,
    }
)
"""Decorates functions that create or write figures: matplotlib reads these settings at both times."""

ORDERS = {"morf": "MoRF (lower is better)", "lerf": "LeRF (higher is better)"}
EVALUATORS = {
    "no-retrain": "no retraining",
    "retrain": "retrained",
    "warm-start": "warm start",
    "fine-tuned": "fine-tuned",
}
REMOVED = "fraction of pixels removed"
SCORE_NAMES = {
    "srg": "LeRF area − MoRF area (higher is better)",
    "morf": "MoRF area (lower is better)",
    "lerf": "LeRF area (higher is better)",
}
GRAY = "#5A5A5A"
"""of notes and reference lines"""
NOTE = 6.5
"""points: the size of notes"""

# Imputers differ in dashes and markers: colors identify methods.
_IMPUTER_STYLES = (("-", "o", "#000000"), ("--", "s", "#000000"), (":", "^", "#000000"), ("-.", "D", "#555555"))
_FORMATS: Mapping[str, Mapping[str, Any]] = {
    "pdf": {"metadata": {"CreationDate": None}},
    "svg": {"metadata": {"Date": None}},
    "png": {"dpi": 200},
}


def literal(text: object) -> str:
    """Text that matplotlib shows verbatim: "$" and, in a legend, a leading "_" have a meaning there."""
    shown = printable(str(text)).replace("$", r"\$")
    return f"\u200b{shown}" if shown.startswith("_") else shown


def in_order(names: Iterable[Any], known: Mapping[str, str]) -> list[str]:
    """The distinct names: first the known ones in their order, then the others as given."""
    unique = list(dict.fromkeys(names))
    return [name for name in known if name in unique] + [name for name in unique if name not in known]


def order_name(order: str) -> str:
    """
    >>> order_name("morf")
    'MoRF'
    """
    return ORDERS.get(order, order).partition(" ")[0]


def setting_name(imputer: str, evaluator: str) -> str:
    """
    >>> setting_name("linear", "retrain")
    'Imputed with linear, retrained'
    """
    return literal(f"Imputed with {imputer}, {EVALUATORS.get(evaluator, evaluator)}")


def grid(rows: int, columns: int, height: float, width: float = PAGE) -> tuple[Figure, list[list[Axes]]]:
    """A figure of panels with shared axes; `height` is that of one row."""
    figure = Figure(figsize=(width, height * rows + 0.45), layout="constrained")
    return figure, figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).tolist()


def imputer_styles(names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Line styles by imputer."""
    keys = ("linestyle", "marker", "color")
    return {
        name: dict(zip(keys, _IMPUTER_STYLES[i % len(_IMPUTER_STYLES)], strict=True)) for i, name in enumerate(names)
    }


def method_style(look: Look) -> dict[str, Any]:
    """The line style of a method."""
    line = {"linestyle": (0, look.dash), "linewidth": 1.0} if look.dash else {"linestyle": "-"}
    return {"color": look.color, "marker": look.marker, **line}


def plot_curve(panel: Axes, rows: pd.DataFrame, column: str = "accuracy", band: bool = False, **style: Any) -> None:
    """Plot `column` against the fraction, optionally with the band of its interval."""
    rows = rows.sort_values("fraction")
    panel.plot(rows["fraction"], rows[column], **style)
    if band:
        panel.fill_between(rows["fraction"], rows["low"], rows["high"], color=style["color"], alpha=0.12, linewidth=0)


def label_axes(
    panels: Sequence[Sequence[Axes]], label: str = "", top: float | None = 1.02, removed: str = REMOVED
) -> None:
    """Label a grid of panels whose horizontal axis is the fraction removed; without a `label` the rows keep theirs."""
    for row in panels:
        if label:
            row[0].set_ylabel(label)
        for panel in row:
            panel.xaxis.set_major_formatter(PercentFormatter(1, decimals=0))
            panel.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
            panel.set_ylim(0, top)
    for panel in panels[-1]:
        panel.set_xlabel(removed)


def legend(figure: Figure, panels: Sequence[Sequence[Axes]]) -> None:
    """One legend below all panels, each name once. The figure grows with its rows, so the panels keep their size."""
    entries = {}
    for panel in (panel for row in panels for panel in row):
        handles, labels = panel.get_legend_handles_labels()
        entries.update({label: handle for handle, label in zip(handles, labels, strict=True) if label not in entries})
    longest = max((len(label) for label in entries), default=1)
    columns = int(np.clip(figure.get_figwidth() * 14 // (longest + 7), 1, max(1, len(entries))))
    rows = -(-len(entries) // columns)
    figure.set_figheight(figure.get_figheight() + 0.15 * (rows - 1))
    figure.legend(entries.values(), entries.keys(), loc="outside lower center", ncols=columns)


@styled
def write_figure(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write PDF, SVG and PNG; the same figure gives the same bytes."""
    # Laid out once: an engine would run again for every format, and even one that is done costs a drawing for each.
    if engine := figure.get_layout_engine():
        engine.execute(figure)
    figure.set_layout_engine(None)
    paths = []
    for suffix, options in _FORMATS.items():
        buffer = io.BytesIO()
        figure.savefig(buffer, format=suffix, **options)
        paths.append(folder / f"{name}.{suffix}")
        write_atomically(paths[-1], buffer.getvalue())
    return paths
