"""One self-contained HTML page: ranking, curves, agreement and pictures. It takes plain tables and arrays."""

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jinja2 import Environment, PackageLoader
from markupsafe import Markup
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from PIL import Image

from roadworthy.files import write_atomically

# Okabe-Ito: eight colours that the colour-blind tell apart; line styles take over beyond that.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7A5195", "#000000")
_STYLES = ("-", "--", "-.", ":")
_DASHES = ("--", ":", "-.", (0, (1, 3)), (0, (8, 2)))
"""of controls, in light grey, then in dark"""
_TITLES = {
    "morf": "MoRF: most relevant removed first (low is good)",
    "lerf": "LeRF: least relevant first (high is good)",
}


@dataclass(frozen=True, eq=False)
class Picture:
    caption: str
    pixels: NDArray[np.float32]
    """`(c, h, w)` in [0, 1]; values beyond are clipped for display"""


@dataclass(frozen=True, eq=False)
class Strip:
    """A row of pictures."""

    title: str
    pictures: Sequence[Picture]


def write_page(
    path: Path,
    *,
    verdict: str,
    warnings: Sequence[str],
    ranking: pd.DataFrame,
    curves: pd.DataFrame,
    agreement: pd.DataFrame | None,
    controls: Sequence[str],
    strips: Sequence[Strip],
    audit: pd.DataFrame | None = None,
) -> Path:
    """Write the page; the file appears whole or not at all."""
    page = Environment(loader=PackageLoader("roadworthy.report"), autoescape=True, trim_blocks=True, lstrip_blocks=True)
    html = page.get_template("page.html").render(
        verdict=verdict,
        warnings=warnings,
        ranking=_table(ranking),
        agreement=None if agreement is None else _table(agreement),
        figures=[_figure(curves[curves["imputer"] == name], name, controls) for name in curves["imputer"].unique()],
        strips=strips,
        audit=None if audit is None else _table(audit[["method", "order", "imputer", "verdict", "why"]]),
        picture=_data_url,
    )
    write_atomically(path, html.encode())
    return path


def _table(table: pd.DataFrame) -> Markup:
    return Markup(table.to_html(index=False, escape=True, border=0, na_rep="–"))  # noqa: S704  pandas escapes


def _figure(curves: pd.DataFrame, imputer: str, controls: Sequence[str]) -> Markup:
    """Accuracy by share removed, one panel per order, as inline SVG."""
    orders = list(curves["order"].unique())
    with rc_context({"svg.fonttype": "none", "font.family": "sans-serif", "font.size": 10, "svg.hashsalt": "road"}):
        figure = Figure(figsize=(5.2 * len(orders) + 1.8, 4.0), layout="constrained")
        panels = figure.subplots(1, len(orders), sharey=True, squeeze=False)[0]
        for panel, order in zip(panels, orders, strict=True):
            _draw(panel, curves[curves["order"] == order], controls)
            panel.set_title(_TITLES.get(order, order), fontsize=10)
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right upper", frameon=False, fontsize=9)
        figure.suptitle(f"filled by: {imputer}", fontsize=11)
        svg = io.StringIO()
        figure.savefig(svg, format="svg", metadata={"Date": None})
    return Markup(svg.getvalue()[svg.getvalue().index("<svg") :])  # noqa: S704  matplotlib escapes its text


def _draw(panel: Axes, curves: pd.DataFrame, controls: Sequence[str]) -> None:
    methods = [name for name in curves["method"].unique() if name not in controls]
    for method in curves["method"].unique():
        rows = curves[curves["method"] == method]
        control = method in controls
        number = list(controls).index(method) if control else methods.index(method)
        look: dict[str, Any] = (
            {"color": ("#999999", "#6b6b6b")[number // 5 % 2], "linestyle": _DASHES[number % 5], "linewidth": 1.1}
            if control
            else {"color": _COLOURS[number % 8], "linestyle": _STYLES[number // 8 % 4], "linewidth": 1.8}
        )
        # "$" and a leading "_" mean something to matplotlib; a method's name is only text.
        label = "\u200b" + str(method).replace("$", r"\$")
        panel.plot(
            rows["fraction"], rows["accuracy"], label=label, marker=None if control else "o", markersize=3, **look
        )
        if not control:
            panel.fill_between(
                rows["fraction"], rows["low"], rows["high"], color=look["color"], alpha=0.10, linewidth=0
            )
    panel.set_xlabel("share of pixels removed")
    panel.set_ylabel("accuracy")
    panel.set_ylim(0, 1.02)
    panel.grid(alpha=0.25)
    panel.spines[["top", "right"]].set_visible(False)


def _data_url(picture: Picture) -> str:
    pixels = np.round(np.clip(picture.pixels, 0, 1) * 255).astype(np.uint8)
    image = Image.fromarray(pixels[0] if len(pixels) != 3 else pixels.transpose(1, 2, 0))
    buffer = io.BytesIO()
    image.save(buffer, format="PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
