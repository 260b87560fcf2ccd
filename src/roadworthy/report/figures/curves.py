"""Accuracy by share removed: families, all methods, debiased over linear, retrained against not."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from roadworthy.report.figures.style import (
    COLUMN,
    EVALUATORS,
    ORDERS,
    by_share,
    draw,
    grid,
    ink,
    legend,
    pen,
    plain,
    styled,
)
from roadworthy.report.palette import Look

Looks = Mapping[str, Look]


def families(methods: Sequence[str]) -> dict[str, list[str]]:
    """Methods by what stands before their hyphen; those without relatives are one family.

    >>> families(["IG", "IG-SG", "GB", "GB-SG", "mine"])
    {'IG': ['IG', 'IG-SG'], 'GB': ['GB', 'GB-SG'], 'others': ['mine']}
    >>> families(["mine", "yours"])
    {'all': ['mine', 'yours']}
    """
    found: dict[str, list[str]] = {}
    for method in methods:
        found.setdefault(method.partition("-")[0], []).append(method)
    large = {name: members for name, members in found.items() if len(members) > 1}
    alone = [members[0] for members in found.values() if len(members) == 1]
    return {**large, **({"others" if large else "all": alone} if alone else {})}


def in_order(names: Iterable[Any], known: Mapping[str, str]) -> list[str]:
    """Each name once, those known first and in their order."""
    there = list(dict.fromkeys(names))
    return [name for name in known if name in there] + [name for name in there if name not in known]


@styled
def family_curves(curves: pd.DataFrame, looks: Looks) -> Figure:
    """A row per evaluator, a column per order: methods of one family with one imputer."""
    evaluators, orders = in_order(curves["evaluator"], EVALUATORS), in_order(curves["order"], ORDERS)
    figure, panels = grid(len(evaluators), len(orders), 1.75)
    for row, evaluator in zip(panels, evaluators, strict=True):
        for panel, order in zip(row, orders, strict=True):
            _methods(panel, curves[(curves["evaluator"] == evaluator) & (curves["order"] == order)], looks, band=True)
            panel.set_title(f"{ORDERS.get(order, order)}, {EVALUATORS.get(evaluator, evaluator)}")
    by_share(panels, "accuracy")
    legend(figure, panels)
    return figure


@styled
def method_curves(curves: pd.DataFrame, looks: Looks) -> Figure:
    """All methods of one evaluator and imputer, a panel per order."""
    orders = in_order(curves["order"], ORDERS)
    figure, panels = grid(1, len(orders), 2.4)
    for panel, order in zip(panels[0], orders, strict=True):
        _methods(panel, curves[curves["order"] == order], looks, band=False)
        panel.set_title(ORDERS.get(order, order))
    by_share(panels, "accuracy")
    legend(figure, panels)
    return figure


def _methods(panel: Axes, curves: pd.DataFrame, looks: Looks, band: bool) -> None:
    for method, rows in curves.groupby("method", sort=False):
        draw(panel, rows, band=band, label=plain(method), **pen(looks[str(method)]))


@styled
def debiased_curves(linear: pd.DataFrame, points: pd.DataFrame, looks: Looks) -> Figure:
    """Debiased curves, solid, over the linearly filled ones, dotted; where undefined, the debiased one has a gap.

    `points` are those of `statistics.debiased`; nothing removed needs no debiasing.
    """
    orders = in_order(linear["order"], ORDERS)
    figure, panels = grid(1, len(orders), 2.2)
    for panel, order in zip(panels[0], orders, strict=True):
        for method, rows in linear[linear["order"] == order].groupby("method", sort=False):
            color = looks[str(method)].color
            own = points[(points["order"] == order) & (points["method"] == method)]
            whole = rows.loc[rows["fraction"] == 0, ["fraction", "accuracy"]].rename(columns={"accuracy": "debiased"})
            draw(panel, rows, color=color, linestyle=":", linewidth=1.0)
            freed = pd.concat([whole, own[["fraction", "debiased"]]])
            draw(panel, freed, "debiased", color=color, marker="o", label=plain(method))
        panel.plot([], [], color="#555555", linestyle=":", label="before debiasing")
        panel.set_title(ORDERS.get(order, order))
    by_share(panels, "accuracy, retrained")
    legend(figure, panels)
    return figure


@styled
def evaluator_curves(curves: pd.DataFrame, look: Look) -> Figure:
    """One method, retrained against not: a panel per order, a line per evaluator and imputer."""
    orders, evaluators = in_order(curves["order"], ORDERS), in_order(curves["evaluator"], EVALUATORS)
    figure, panels = grid(1, len(orders), 2.0, width=2 * COLUMN)
    inks = ink(list(dict.fromkeys(curves["imputer"])))
    for panel, order in zip(panels[0], orders, strict=True):
        for evaluator in evaluators:
            for imputer, drawn in inks.items():
                rows = curves[curves[["order", "evaluator", "imputer"]].eq([order, evaluator, imputer]).all(axis=1)]
                color = look.color if evaluator == evaluators[-1] else "#777777"
                label = plain(f"{EVALUATORS.get(evaluator, evaluator)}, {imputer}")
                if len(rows):
                    draw(panel, rows, **{**drawn, "color": color}, label=label)
        panel.set_title(ORDERS.get(order, order))
    by_share(panels, "accuracy")
    legend(figure, panels)
    return figure
