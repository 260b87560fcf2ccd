"""What the audit found: what masks give away, what fills hide, how geometry helps, and the bounds behind it."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from roadworthy.audit.information import bits_at_least, bits_if_optimal
from roadworthy.report.figures.curves import Looks, in_order
from roadworthy.report.figures.style import COLUMN, ORDERS, by_share, draw, grid, ink, legend, pen, plain, styled


@styled
def information(masks: pd.DataFrame, classes: int, looks: Looks) -> Figure:
    """Accuracy against information: the strip between the bounds, for two classes and for those of the data.

    Each measured accuracy of a classifier on masks lies across the strip: from the bits it proves to those it would
    have were it optimal.
    """
    counts = sorted({2, classes})
    figure = Figure(figsize=(COLUMN * len(counts), 2.7), layout="constrained")
    panels = figure.subplots(1, len(counts), squeeze=False)[0].tolist()
    for panel, count in zip(panels, counts, strict=True):
        _strip(panel, count)
        for method, rows in masks.groupby("method", sort=False) if count == classes else ():
            drawn = {**pen(looks[str(method)]), "marker": "|", "label": plain(method)}
            for _, row in rows.iterrows():
                panel.plot([row["bits"], row["bits_if_optimal"]], [row["accuracy"]] * 2, **drawn)
        panel.set_title(f"{count} equally likely classes")
        panel.set_xlabel("mutual information with the class (bits)")
        panel.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    panels[0].set_ylabel("best possible accuracy")
    legend(figure, [panels])
    return figure


def _strip(panel: Axes, classes: int) -> None:
    accuracy = np.linspace(1 / classes, 1, 400)
    shares = [1 / classes] * classes
    least, most = ([bits(float(one), shares) for one in accuracy] for bits in (bits_at_least, bits_if_optimal))
    panel.fill_betweenx(accuracy, least, most, color="#000000", alpha=0.07, linewidth=0)
    panel.plot(least, accuracy, color="#000000", linestyle="-", label="accuracy at most (Fano)")
    panel.plot(most, accuracy, color="#000000", linestyle="--", label="accuracy at least (Hellman-Raviv, Kovalevskij)")


@styled
def mask_accuracy(masks: pd.DataFrame, looks: Looks) -> Figure:
    """What a classifier tells from the binary masks alone, with chance; a panel per order."""
    orders = in_order(masks["order"], ORDERS)
    figure, panels = grid(1, len(orders), 2.0, width=COLUMN * max(2, len(orders)))
    for panel, order in zip(panels[0], orders, strict=True):
        there = masks[masks["order"] == order]
        for method, rows in there.groupby("method", sort=False):
            draw(panel, rows, band=True, label=plain(method), **pen(looks[str(method)]))
        panel.axhline(there["chance"].mean(), color="#777777", linestyle=":", label="chance")
        panel.set_title(f"{order_name(order)} masks, no pixel values")
    by_share(panels, "accuracy from masks")
    legend(figure, panels)
    return figure


def order_name(order: str) -> str:
    return ORDERS.get(order, order).partition(" ")[0]


@styled
def mask_over_scores(masks: pd.DataFrame, curves: pd.DataFrame, looks: Looks) -> Figure:
    """Mask-only accuracy, solid, over the MoRF scores of one evaluator and imputer, pale: a panel per method.

    Where the two go together, the score may be a score of the mask.
    """
    methods = [name for name in dict.fromkeys(masks["method"]) if name in set(curves["method"])]
    columns = min(4, len(methods))
    figure, panels = grid(-(-len(methods) // columns), columns, 1.5)
    flat = [panel for row in panels for panel in row]
    for panel, method in zip(flat, methods, strict=False):
        drawn = pen(looks[method])
        own, scores = masks[masks["method"] == method], curves[curves["method"] == method]
        draw(panel, scores, color="#999999", marker="s", label="MoRF score")
        draw(panel, own, band=True, **drawn)
        panel.plot([], [], color="#000000", marker="o", label="from the masks alone")
        panel.axhline(own["chance"].mean(), color="#777777", linestyle=":", label="chance")
        panel.set_title(plain(method), color=drawn["color"])
    by_share(panels, "accuracy")
    for panel in flat[len(methods) :]:
        panel.set_axis_off()
    legend(figure, panels)
    return figure


@styled
def recovery_error(recovery: pd.DataFrame) -> Figure:
    """How often the imputation predictor is wrong about a pixel: a panel per kind of masks, a line per imputer."""
    kinds = in_order(recovery["masks"], {"scatter": "", "blobs": ""})
    inks = ink(list(dict.fromkeys(recovery["imputer"])))
    columns = min(3, len(kinds))
    figure, panels = grid(-(-len(kinds) // columns), columns, 1.6, width=COLUMN * min(2, 0.5 + 0.5 * columns))
    flat = [panel for row in panels for panel in row]
    for panel, kind in zip(flat, kinds, strict=False):
        _predictors(panel, recovery[recovery["masks"] == kind], inks)
        panel.set_title(plain(f"masks: {kind}"))
    by_share(panels, "pixels told wrongly", top=None)
    for panel in flat[len(kinds) :]:
        panel.set_axis_off()
    legend(figure, panels)
    return figure


def _predictors(panel: Axes, rows: pd.DataFrame, inks: Mapping[str, Mapping[str, str]]) -> None:
    for imputer, drawn in inks.items():
        own = rows[rows["imputer"] == imputer]
        if len(own):
            draw(panel, own, "error", band=True, label=plain(imputer), **drawn)
    guess = rows.groupby("fraction")[["guess"]].mean().reset_index()
    draw(panel, guess, "guess", color="#999999", linewidth=3, alpha=0.5, label="cannot be told")


@styled
def bias_indicator(geometry: pd.DataFrame, looks: Looks) -> Figure:
    """γ by fraction, a panel per order; hollow where it was clipped, dotted the optimum where it is known."""
    orders = in_order(geometry["order"], ORDERS)
    figure, panels = grid(1, len(orders), 2.0)
    for panel, order in zip(panels[0], orders, strict=True):
        there = geometry[geometry["order"] == order]
        for method, rows in there.groupby("method", sort=False):
            look = looks[str(method)]
            draw(panel, rows, "gamma", label=plain(method), **pen(look))
            cut = rows[rows["clipped"].astype(bool)]
            panel.plot(cut["fraction"], cut["gamma"], "o", color=look.color, markerfacecolor="white")
            if rows["optimum"].notna().any():
                draw(panel, rows, "optimum", color=look.color, linestyle=":", linewidth=0.9)
        panel.set_title(f"{order_name(order)}: 1 = kept pixels say nothing of the removed")
    by_share(panels, "bias indicator γ")
    for panel in panels[0]:
        panel.yaxis.set_major_formatter("{x:.1f}")
    legend(figure, panels)
    return figure
