"""The audit's figures: class information in masks, detection of imputed pixels, geometry."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from roadworthy.audit.information import bits_at_least, bits_if_optimal
from roadworthy.report.figures.curves import Looks
from roadworthy.report.figures.style import (
    COLUMN,
    ORDERS,
    grid,
    imputer_styles,
    in_order,
    label_axes,
    legend,
    literal,
    method_style,
    order_name,
    plot_curve,
    styled,
)


@styled
def information(masks: pd.DataFrame, classes: int, looks: Looks) -> Figure:
    """Accuracy against mutual information: the region between the bounds, for two classes and for those of the data.

    Each measured accuracy of the mask classifier is a line across the region: from the bits that it proves to those
    that are possible if it is optimal.
    """
    counts = sorted({2, classes})
    figure = Figure(figsize=(COLUMN * len(counts), 2.7), layout="constrained")
    panels = figure.subplots(1, len(counts), squeeze=False)[0].tolist()
    for panel, count in zip(panels, counts, strict=True):
        _bounds(panel, count)
        for method, rows in masks.groupby("method", sort=False) if count == classes else ():
            style = {**method_style(looks[str(method)]), "marker": "|", "label": literal(method)}
            for _, row in rows.iterrows():
                panel.plot([row["bits"], row["bits_if_optimal"]], [row["accuracy"]] * 2, **style)
        panel.set_title(f"{count} equally likely classes")
        panel.set_xlabel("mutual information with the class (bits)")
        panel.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    panels[0].set_ylabel("best possible accuracy")
    legend(figure, [panels])
    return figure


def _bounds(panel: Axes, classes: int) -> None:
    accuracy = np.linspace(1 / classes, 1, 400)
    shares = [1 / classes] * classes
    least, most = ([bits(float(value), shares) for value in accuracy] for bits in (bits_at_least, bits_if_optimal))
    panel.fill_betweenx(accuracy, least, most, color="#000000", alpha=0.07, linewidth=0)
    panel.plot(least, accuracy, color="#000000", linestyle="-", label="upper bound (Fano)")
    panel.plot(most, accuracy, color="#000000", linestyle="--", label="lower bound (Kovalevskij)")


@styled
def mask_accuracy(masks: pd.DataFrame, looks: Looks) -> Figure:
    """Accuracy of the mask classifier, with chance; one panel per order."""
    orders = in_order(masks["order"], ORDERS)
    figure, panels = grid(1, len(orders), 2.0, width=COLUMN * max(2, len(orders)))
    for panel, order in zip(panels[0], orders, strict=True):
        order_masks = masks[masks["order"] == order]
        for method, rows in order_masks.groupby("method", sort=False):
            plot_curve(panel, rows, band=True, label=literal(method), **method_style(looks[str(method)]))
        panel.axhline(order_masks["chance"].mean(), color="#777777", linestyle=":", label="chance")
        panel.set_title(f"{order_name(order)} masks only")
    label_axes(panels, "accuracy from masks")
    legend(figure, panels)
    return figure


@styled
def mask_over_curves(masks: pd.DataFrame, curves: pd.DataFrame, looks: Looks) -> Figure:
    """Mask-only accuracy (colored) over the MoRF curves of one evaluator and imputer (gray), one panel per method.

    Where the two move together, the curve may measure the mask.
    """
    methods = [name for name in dict.fromkeys(masks["method"]) if name in set(curves["method"])]
    columns = min(4, len(methods))
    figure, panels = grid(-(-len(methods) // columns), columns, 1.5)
    flat = [panel for row in panels for panel in row]
    for panel, method in zip(flat, methods, strict=False):
        style = method_style(looks[method])
        mask_rows, curve_rows = masks[masks["method"] == method], curves[curves["method"] == method]
        plot_curve(panel, curve_rows, color="#999999", marker="s", label="MoRF curve")
        plot_curve(panel, mask_rows, band=True, **style)
        panel.plot([], [], color="#000000", marker="o", label="masks only")
        panel.axhline(mask_rows["chance"].mean(), color="#777777", linestyle=":", label="chance")
        panel.set_title(literal(method), color=style["color"])
    label_axes(panels, "accuracy")
    for panel in flat[len(methods) :]:
        panel.set_axis_off()
    legend(figure, panels)
    return figure


@styled
def detection_error(detection: pd.DataFrame) -> Figure:
    """Pixel error rate of the mask detector: one panel per kind of masks and order, one line per imputer."""
    detection = detection.assign(masks=_kinds(detection))
    kinds = in_order(detection["masks"], {"scatter": "", "blobs": ""})
    styles = imputer_styles(list(dict.fromkeys(detection["imputer"])))
    columns = min(3, len(kinds))
    figure, panels = grid(-(-len(kinds) // columns), columns, 1.6, width=COLUMN * min(2, 0.5 + 0.5 * columns))
    flat = [panel for row in panels for panel in row]
    for panel, kind in zip(flat, kinds, strict=False):
        _detectors(panel, detection[detection["masks"] == kind], styles)
        panel.set_title(literal(f"masks: {kind}"))
    label_axes(panels, "pixel error rate", top=None)
    for panel in flat[len(kinds) :]:
        panel.set_axis_off()
    legend(figure, panels)
    return figure


def _kinds(detection: pd.DataFrame) -> pd.Series:
    """The masks of a method are others in LeRF than in MoRF; random masks have no order."""
    orders = detection["order"].fillna("").map(lambda order: f", {order_name(order)}" if order else "")
    return pd.Series(detection["masks"] + orders)


def _detectors(panel: Axes, rows: pd.DataFrame, styles: Mapping[str, Mapping[str, str]]) -> None:
    for imputer, style in styles.items():
        imputer_rows = rows[rows["imputer"] == imputer]
        if len(imputer_rows):
            plot_curve(panel, imputer_rows, "error", band=True, label=literal(imputer), **style)
    guess = rows.groupby("fraction")[["guess"]].mean().reset_index()
    plot_curve(
        panel, guess, "guess", color="#999999", linewidth=3, alpha=0.5, label="constant prediction,\nknows the fraction"
    )


@styled
def bias_indicator(geometry: pd.DataFrame, looks: Looks) -> Figure:
    """γ against the fraction, one panel per order; hollow where clipped, dotted the optimum where known."""
    orders = in_order(geometry["order"], ORDERS)
    figure, panels = grid(1, len(orders), 2.0)
    for panel, order in zip(panels[0], orders, strict=True):
        for method, rows in geometry[geometry["order"] == order].groupby("method", sort=False):
            look = looks[str(method)]
            plot_curve(panel, rows, "gamma", label=literal(method), **method_style(look))
            clipped = rows[rows["clipped"].astype(bool)]
            panel.plot(clipped["fraction"], clipped["gamma"], "o", color=look.color, markerfacecolor="white")
            if rows["optimum"].notna().any():
                plot_curve(panel, rows, "optimum", color=look.color, linestyle=":", linewidth=0.9)
        panel.set_title(f"{order_name(order)} (1 = removed pixels are not restored at all)")
    label_axes(panels, "bias indicator γ")
    for panel in panels[0]:
        panel.yaxis.set_major_formatter("{x:.1f}")
    legend(figure, panels)
    return figure
