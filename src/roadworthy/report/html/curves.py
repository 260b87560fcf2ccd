"""Accuracy against the fraction removed; the template draws it as SVG."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pandas as pd

from roadworthy.report.html.scales import Axis, Tick
from roadworthy.report.labels import shortened, spread
from roadworthy.report.tables import fraction_removed, setting_title, units_of

WIDTH, HEIGHT = 500, 312
LEFT, RIGHT, TOP, BOTTOM = 50, 116, 30, 46
MOST_LETTERS = 12

TITLES = {"morf": "MoRF: most relevant first, lower is better", "lerf": "LeRF: least relevant first, higher is better"}


class Marker(NamedTuple):
    x: float
    y: float
    fraction: str
    value: str
    """with its interval"""


class Line(NamedTuple):
    number: int
    """of the method, on the whole page"""
    name: str
    control: bool
    strong: bool
    path: str
    band: str
    """the interval as a polygon; "" for lines that are not emphasized, whose bands would hide the others"""
    points: Sequence[Marker]
    short: str
    label: float | None
    """height of the name at the end of the line"""


class Level(NamedTuple):
    """A horizontal reference line."""

    name: str
    y: float


class Band(NamedTuple):
    """A range of fractions at which most imputed images are out of scope."""

    x: float
    width: float


class Panel(NamedTuple):
    title: str
    label: str
    """for screen readers"""
    lines: Sequence[Line]
    levels: Sequence[Level]
    across: Sequence[Tick]
    up: Sequence[Tick]
    removed: str
    """title of the horizontal axis"""
    shaded: Sequence[Band] = ()


class Row(NamedTuple):
    """The panels of one evaluator and imputer, one per order."""

    title: str
    panels: Sequence[Panel]
    numbers: pd.DataFrame


def rows(
    curves: pd.DataFrame,
    controls: Sequence[str],
    numbers: Mapping[str, int],
    strong: Sequence[str] = (),
    chance: float | None = None,
    main: tuple[str, str] | None = None,
    out_of_scope: Mapping[tuple[str, str], Sequence[float]] | None = None,
) -> list[Row]:
    """One row per evaluator and imputer, that of the conclusion first, all with the same axes.

    `out_of_scope`: (imputer, order) to fractions that are shaded.
    """
    out = out_of_scope or {}
    axes = _axes(curves, chance)
    several = curves["evaluator"].nunique() > 1
    blocks = sorted(curves.groupby(["evaluator", "imputer"], sort=False), key=lambda block: block[0] != main)
    return [
        Row(
            setting_title(imputer, evaluator if several else None, units_of(block)),
            [
                _panel(axes, block[block["order"] == order], order, controls, numbers, strong, chance)._replace(
                    shaded=bands(
                        axes.x,
                        sorted(block["fraction"].unique()),
                        out.get((str(imputer), order), ()) if evaluator == "no-retrain" else (),
                    )
                )
                for order in _orders(block)
            ],
            _numbers(block),
        )
        for (evaluator, imputer), block in blocks
    ]


class _Axes(NamedTuple):
    x: Axis
    y: Axis


def _axes(curves: pd.DataFrame, chance: float | None) -> _Axes:
    """The vertical axis starts at 0 and ends at the next fifth above the highest interval."""
    top = float(np.ceil(max(curves["high"].max(), chance or 0) * 5 - 1e-9) / 5)
    right = float(curves["fraction"].max()) or 1.0
    return _Axes(
        Axis(0, right, LEFT, WIDTH - RIGHT), Axis(0, max(0.2, min(1.0, top)), HEIGHT - BOTTOM, TOP)
    )  # fmt: skip


def _orders(block: pd.DataFrame) -> list[str]:
    """MoRF first."""
    return sorted(block["order"].unique(), key=lambda order: (order != "morf", order))


def _panel(
    axes: _Axes,
    curves: pd.DataFrame,
    order: str,
    controls: Sequence[str],
    numbers: Mapping[str, int],
    strong: Sequence[str],
    chance: float | None,
) -> Panel:
    lines = [
        _line(axes, rows, numbers[str(method)], str(method), method in controls, method in strong)
        for method, rows in curves.groupby("method", sort=False)
    ]
    title, removed = TITLES.get(order, order), fraction_removed(curves)
    last = curves[curves["fraction"] == curves["fraction"].max()].sort_values("accuracy")
    ends = f"{last['method'].iloc[0]} ends lowest, {last['method'].iloc[-1]} highest"
    # The emphasized lines are drawn last, above the others; controls below the methods.
    ordered = sorted(_labeled(lines), key=lambda line: (line.strong, not line.control))
    return Panel(
        title,
        f"Accuracy by {removed}. {title}. {len(lines)} curves: {ends}.",
        ordered,
        _levels(axes, curves, chance),
        axes.x.ticks("{:.0%}"),
        axes.y.ticks("{:.0%}"),
        removed,
    )


def bands(axis: Axis, fractions: Sequence[float], shaded: Sequence[float]) -> list[Band]:
    """From halfway to the fraction before to halfway to the next, neighbors joined."""
    edges = [(a + b) / 2 for a, b in pairwise(fractions)]
    found: list[Band] = []
    for row, fraction in enumerate(fractions):
        if fraction in shaded:
            start = axis.at(edges[row - 1] if row else fraction)
            end = axis.at(edges[row] if row < len(edges) else fraction)
            joined = found and abs(found[-1].x + found[-1].width - start) < 1
            found[-1:] = (
                [Band(found[-1].x, round(end - found[-1].x, 1))]
                if joined
                else [*found[-1:], Band(start, round(end - start, 1))]
            )
    return found


def _levels(axes: _Axes, curves: pd.DataFrame, chance: float | None) -> list[Level]:
    plain = curves.loc[curves["fraction"] == 0, "accuracy"]
    levels = [Level(f"nothing removed {plain.iloc[0]:.0%}", axes.y.at(plain.iloc[0]))] if len(plain) else []
    return [*levels, *([Level(f"chance {chance:.0%}", axes.y.at(chance))] if chance is not None else [])]


def _labeled(lines: Sequence[Line]) -> list[Line]:
    """Names at the ends of the emphasized lines, moved apart."""
    strong = [line for line in lines if line.strong]
    heights = spread([line.points[-1].y for line in strong], 15, TOP, HEIGHT - BOTTOM)
    placed = {line.name: height for line, height in zip(strong, heights, strict=True)}
    return [line._replace(label=placed.get(line.name)) for line in lines]


def _line(axes: _Axes, rows: pd.DataFrame, number: int, name: str, control: bool, strong: bool) -> Line:
    rows = rows.sort_values("fraction")
    points = [
        Marker(axes.x.at(share), axes.y.at(value), f"{share:.0%}", f"{value:.1%} [{low:.1%}, {high:.1%}]")
        for share, value, low, high in zip(
            *(rows[column].tolist() for column in ("fraction", "accuracy", "low", "high")), strict=True
        )
    ]
    upper = [f"{point.x},{axes.y.at(high)}" for point, high in zip(points, rows["high"], strict=True)]
    lower = [f"{point.x},{axes.y.at(low)}" for point, low in zip(points, rows["low"], strict=True)]
    path = "M" + "L".join(f"{point.x},{point.y}" for point in points)
    band = " ".join(upper + lower[::-1]) if strong and not control else ""
    return Line(number, name, control, strong, path, band, points, shortened(name, MOST_LETTERS), None)


def _numbers(block: pd.DataFrame) -> pd.DataFrame:
    """The values: one row per method and order, one column per fraction."""
    order = pd.Series(block["order"].map({"morf": "MoRF", "lerf": "LeRF"}).fillna(block["order"]), name="order")
    shares = block["fraction"].map("{:.0%}".format)
    table = block.assign(order=order, share=shares, value=block["accuracy"].map("{:.1%}".format))
    wide = table.pivot_table(index=["method", "order"], columns="share", values="value", aggfunc="first", sort=False)
    return wide.reset_index().fillna("–").rename_axis(columns=None)
