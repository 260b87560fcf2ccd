"""Accuracy against the fraction removed: by family, all methods, debiased, and by evaluator."""

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from roadworthy.report.figures.style import (
    COLUMN,
    EVALUATORS,
    ORDERS,
    grid,
    imputer_styles,
    in_order,
    label_axes,
    legend,
    literal,
    method_style,
    plot_curve,
    styled,
)
from roadworthy.report.palette import Look
from roadworthy.report.tables import fraction_removed

Looks = Mapping[str, Look]


def families(methods: Sequence[str]) -> dict[str, list[str]]:
    """Group methods by their name up to the hyphen; the ungrouped ones form one family.

    >>> families(["IG", "IG-SG", "GB", "GB-SG", "mine"])
    {'IG': ['IG', 'IG-SG'], 'GB': ['GB', 'GB-SG'], 'others': ['mine']}
    >>> families(["mine", "yours"])
    {'all': ['mine', 'yours']}
    """
    by_prefix: dict[str, list[str]] = {}
    for method in methods:
        by_prefix.setdefault(method.partition("-")[0], []).append(method)
    large = {name: members for name, members in by_prefix.items() if len(members) > 1}
    single = [members[0] for members in by_prefix.values() if len(members) == 1]
    return {**large, **({"others" if large else "all": single} if single else {})}


@styled
def family_curves(curves: pd.DataFrame, looks: Looks) -> Figure:
    """Methods of one family with one imputer; one row per evaluator, one column per order."""
    evaluators, orders = in_order(curves["evaluator"], EVALUATORS), in_order(curves["order"], ORDERS)
    figure, panels = grid(len(evaluators), len(orders), 1.75)
    for row, evaluator in zip(panels, evaluators, strict=True):
        for panel, order in zip(row, orders, strict=True):
            _methods(panel, curves[(curves["evaluator"] == evaluator) & (curves["order"] == order)], looks, band=True)
            panel.set_title(f"{ORDERS.get(order, order)}, {EVALUATORS.get(evaluator, evaluator)}")
    figure.suptitle(literal(f"Imputed with {', '.join(curves['imputer'].unique())}"))
    label_axes(panels, "accuracy", removed=fraction_removed(curves))
    legend(figure, panels)
    return figure


def _methods(panel: Axes, curves: pd.DataFrame, looks: Looks, band: bool) -> None:
    for method, rows in curves.groupby("method", sort=False):
        plot_curve(panel, rows, band=band, label=literal(method), **method_style(looks[str(method)]))


@styled
def debiased_curves(linear: pd.DataFrame, points: pd.DataFrame, looks: Looks) -> Figure:
    """Debiased curves (solid, with gaps where undefined) over the curves of linear imputation (dotted).

    `points` is the table of `roadworthy.audit.debiased`. At fraction 0 there is nothing to debias.
    """
    orders = in_order(linear["order"], ORDERS)
    figure, panels = grid(1, len(orders), 2.2)
    for panel, order in zip(panels[0], orders, strict=True):
        for method, rows in linear[linear["order"] == order].groupby("method", sort=False):
            color = looks[str(method)].color
            debiased = points[(points["order"] == order) & (points["method"] == method)]
            whole = rows.loc[rows["fraction"] == 0, ["fraction", "accuracy"]].rename(columns={"accuracy": "debiased"})
            plot_curve(panel, rows, color=color, linestyle=":", linewidth=1.0)
            plot_curve(
                panel,
                pd.concat([whole, debiased[["fraction", "debiased"]]]),
                "debiased",
                color=color,
                marker="o",
                label=literal(method),
            )
        panel.plot([], [], color="#555555", linestyle=":", label="before debiasing")
        panel.set_title(ORDERS.get(order, order))
    figure.suptitle(literal(f"Imputed with {', '.join(linear['imputer'].unique())}"))
    label_axes(panels, "accuracy, retrained")
    legend(figure, panels)
    return figure


@styled
def evaluator_curves(curves: pd.DataFrame, look: Look) -> Figure:
    """One method: one panel per order, one line per evaluator and imputer."""
    orders, evaluators = in_order(curves["order"], ORDERS), in_order(curves["evaluator"], EVALUATORS)
    figure, panels = grid(1, len(orders), 2.0, width=2 * COLUMN)
    styles = imputer_styles(list(dict.fromkeys(curves["imputer"])))
    for panel, order in zip(panels[0], orders, strict=True):
        for evaluator in evaluators:
            for imputer, style in styles.items():
                rows = curves[curves[["order", "evaluator", "imputer"]].eq([order, evaluator, imputer]).all(axis=1)]
                color = look.color if evaluator == evaluators[-1] else "#777777"
                label = literal(f"{EVALUATORS.get(evaluator, evaluator)}, {imputer}")
                if len(rows):
                    plot_curve(panel, rows, **{**style, "color": color}, label=label)
        panel.set_title(ORDERS.get(order, order))
    label_axes(panels, "accuracy", removed=fraction_removed(curves))
    legend(figure, panels)
    return figure
