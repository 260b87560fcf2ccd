"""Coordinates of the curves; the template draws them as SVG."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from roadworthy.report.tables import setting_title

WIDTH, HEIGHT = 420, 290
LEFT, RIGHT, TOP, BOTTOM = 44, 10, 24, 42

TITLES = {"morf": "MoRF: most relevant first, lower is better", "lerf": "LeRF: least relevant first, higher is better"}


class Marker(NamedTuple):
    x: float
    y: float
    text: str
    """tooltip"""


class Line(NamedTuple):
    number: int
    """of the method, on the whole page"""
    name: str
    control: bool
    path: str
    band: str
    """the interval as a polygon; "" for controls, whose bands would hide the methods"""
    points: Sequence[Marker]


class Tick(NamedTuple):
    at: float
    text: str


class Panel(NamedTuple):
    title: str
    label: str
    """for screen readers"""
    lines: Sequence[Line]
    across: Sequence[Tick]
    up: Sequence[Tick]


class Row(NamedTuple):
    """The panels of one evaluator and imputer, one per order."""

    title: str
    panels: Sequence[Panel]
    numbers: pd.DataFrame


def rows(curves: pd.DataFrame, controls: Sequence[str], numbers: Mapping[str, int]) -> list[Row]:
    """One row per evaluator and imputer, all with the same axes."""
    scale = _scale(curves)
    return [
        Row(
            setting_title(imputer, evaluator),
            [_panel(scale, block[block["order"] == order], order, controls, numbers) for order in _orders(block)],
            _numbers(block),
        )
        for (evaluator, imputer), block in curves.groupby(["evaluator", "imputer"], sort=False)
    ]


class _Scale(NamedTuple):
    right: float
    top: float

    def x(self, share: float) -> float:
        return round(LEFT + share / self.right * (WIDTH - LEFT - RIGHT), 1)

    def y(self, value: float) -> float:
        return round(HEIGHT - BOTTOM - value / self.top * (HEIGHT - TOP - BOTTOM), 1)


def _scale(curves: pd.DataFrame) -> _Scale:
    """The axis starts at 0 and ends at the next fifth above the highest interval."""
    top = float(np.ceil(curves["high"].max() * 5 - 1e-9) / 5)
    return _Scale(float(curves["fraction"].max()) or 1.0, max(0.2, min(1.0, top)))


def _orders(block: pd.DataFrame) -> list[str]:
    """MoRF first."""
    return sorted(block["order"].unique(), key=lambda order: (order != "morf", order))


def _panel(
    scale: _Scale, curves: pd.DataFrame, order: str, controls: Sequence[str], numbers: Mapping[str, int]
) -> Panel:
    lines = [
        _line(scale, rows, numbers[str(method)], str(method), method in controls)
        for method, rows in curves.groupby("method", sort=False)
    ]
    title = TITLES.get(order, order)
    last = curves[curves["fraction"] == curves["fraction"].max()].sort_values("accuracy")
    ends = f"{last['method'].iloc[0]} ends lowest, {last['method'].iloc[-1]} highest"
    # Controls are drawn first, below the methods.
    return Panel(
        title,
        f"Accuracy by fraction of pixels removed. {title}. {len(lines)} curves: {ends}.",
        sorted(lines, key=lambda line: not line.control),
        [Tick(scale.x(share), f"{share:.0%}") for share in _steps(scale.right)],
        [Tick(scale.y(value), f"{value:.0%}") for value in _steps(scale.top)],
    )


def _steps(end: float) -> list[float]:
    """
    >>> _steps(0.9), _steps(0.4)
    ([0.0, 0.2, 0.4, 0.6, 0.8], [0.0, 0.1, 0.2, 0.3, 0.4])
    """
    step = 0.2 if end > 0.5 else 0.1 if end > 0.2 else 0.05
    return [round(k * step, 2) for k in range(int(end / step + 1e-9) + 1)]


def _line(scale: _Scale, rows: pd.DataFrame, number: int, name: str, control: bool) -> Line:
    rows = rows.sort_values("fraction")
    points = [
        Marker(scale.x(share), scale.y(value), f"{name}, {share:.0%} removed: {value:.1%} [{low:.1%}, {high:.1%}]")
        for share, value, low, high in zip(
            *(rows[column].tolist() for column in ("fraction", "accuracy", "low", "high")), strict=True
        )
    ]
    upper = [f"{point.x},{scale.y(high)}" for point, high in zip(points, rows["high"], strict=True)]
    lower = [f"{point.x},{scale.y(low)}" for point, low in zip(points, rows["low"], strict=True)]
    path = "M" + "L".join(f"{point.x},{point.y}" for point in points)
    return Line(number, name, control, path, "" if control else " ".join(upper + lower[::-1]), points)


def _numbers(block: pd.DataFrame) -> pd.DataFrame:
    """The values: one row per method and order, one column per fraction."""
    order = pd.Series(block["order"].map({"morf": "MoRF", "lerf": "LeRF"}).fillna(block["order"]), name="order")
    shares = block["fraction"].map("{:.0%}".format)
    table = block.assign(order=order, share=shares, value=block["accuracy"].map("{:.1%}".format))
    wide = table.pivot_table(index=["order", "method"], columns="share", values="value", aggfunc="first", sort=False)
    return wide.reset_index().fillna("–").rename_axis(columns=None)
