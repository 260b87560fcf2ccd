"""Accuracy against the fraction removed, MoRF beside LeRF: leaders and controls stand out, curves carry their names."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from roadworthy.report.figures.style import (
    EVALUATORS,
    GRAY,
    ORDERS,
    grid,
    in_order,
    label_axes,
    literal,
    method_style,
    styled,
)
from roadworthy.report.labels import shortened, spread
from roadworthy.report.palette import CONTROL_MARKER, Look
from roadworthy.report.tables import fraction_removed

MOST_NAMES = 14
"""more curves than these: only the emphasized ones have names"""
HEIGHT = 2.35
"""inches of a row of panels"""
_TOP = 1.02


class References(NamedTuple):
    """Horizontal lines."""

    chance: float
    whole: Mapping[tuple[str, str], float]
    """accuracy before removal, by evaluator and imputer"""


@styled
def setting_curves(
    curves: pd.DataFrame, looks: Mapping[str, Look], emphasized: Collection[str], references: References
) -> Figure:
    """A row of panels per evaluator and imputer of `curves`, a column per order."""
    settings = list(dict.fromkeys(zip(curves["evaluator"], curves["imputer"], strict=True)))
    orders = in_order(curves["order"], ORDERS)
    figure, panels = grid(len(settings), len(orders), HEIGHT)
    for row, (evaluator, imputer) in zip(panels, settings, strict=True):
        block = curves[(curves["evaluator"] == evaluator) & (curves["imputer"] == imputer)]
        lines = {"chance": references.chance, "whole images": references.whole[evaluator, imputer]}
        for panel, order in zip(row, orders, strict=True):
            _panel(panel, block[block["order"] == order], looks, emphasized, lines)
            panel.set_title(literal(f"{ORDERS.get(order, order)}, imputed with {imputer}"))
        row[0].set_ylabel(literal(f"accuracy, {EVALUATORS.get(evaluator, evaluator)}"))
    label_axes(panels, top=_TOP, removed=fraction_removed(curves))
    return figure


def _panel(
    panel: Axes, rows: pd.DataFrame, looks: Mapping[str, Look], emphasized: Collection[str], lines: Mapping[str, float]
) -> None:
    methods = sorted(dict.fromkeys(rows["method"]), key=lambda name: (name in emphasized, name))
    named = methods if len(methods) <= MOST_NAMES else [name for name in methods if name in emphasized]
    labels = []
    for name in methods:
        points = rows[rows["method"] == name].sort_values("fraction")
        style = _style(looks[name], name in emphasized)
        panel.plot(points["fraction"], points["accuracy"], label=literal(name), **style)
        if name in emphasized and looks[name].marker != CONTROL_MARKER:
            panel.fill_between(
                points["fraction"], points["low"], points["high"], color=style["color"], alpha=0.1, linewidth=0
            )
        if name in named:
            labels.append(_Label(shortened(name), float(points["accuracy"].iloc[-1]), style))
    for name, value in lines.items():
        panel.axhline(value, color=GRAY, linewidth=0.8, linestyle=(0, (1, 2)), zorder=1)
        labels.append(_Label(f"{name} {value:.0%}".replace("%", " %"), value, {"color": GRAY}))
    panel.set_xlim(0, float(rows["fraction"].max()))
    _name(panel, labels)


class _Label(NamedTuple):
    text: str
    end: float
    """of its curve"""
    style: Mapping[str, Any]


def _style(look: Look, strong: bool) -> dict[str, Any]:
    style = method_style(look)
    if strong:
        return {**style, "linewidth": 1.8, "markersize": 4, "zorder": 3}
    return {**style, "linewidth": 0.7, "markersize": 2.2, "alpha": 0.6, "zorder": 2}


def _name(panel: Axes, labels: Sequence[_Label]) -> None:
    """Names right of the panel, moved apart, each with the marker of its curve and a line to its end."""
    places = spread([label.end for label in labels], 0.125 / (HEIGHT - 0.45) * _TOP, 0.0, _TOP)
    right, beside = panel.get_xlim()[1], panel.get_yaxis_transform()
    for label, place in zip(labels, places, strict=True):
        strong = label.style.get("zorder") == 3
        leader = {"arrowstyle": "-", "color": label.style["color"], "linewidth": 0.5, "shrinkA": 0, "shrinkB": 0,
                  "relpos": (0, 0.5), "alpha": 0.7}  # fmt: skip
        panel.annotate(
            literal(label.text), (right, label.end), (1.09, place), textcoords=beside, va="center", fontsize=7 if strong
            else 6.2, fontweight="bold" if strong else "normal", color=label.style["color"], arrowprops=leader,
            annotation_clip=False,
        )  # fmt: skip
        if marker := label.style.get("marker"):
            panel.plot([1.055], [place], marker, transform=beside, color=label.style["color"], clip_on=False,
                       markersize=4 if strong else 3)  # fmt: skip
