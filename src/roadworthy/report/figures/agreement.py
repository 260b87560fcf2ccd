"""How far the settings agree on the ranking of the methods: a heat map with intervals in the cells."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from roadworthy.report.figures.style import EVALUATORS, GRAY, NOTE, literal, order_name, styled
from roadworthy.statistics import Setting, agreement_matrix

FEW = 6
"""settings whose names fit below the columns; more are numbered"""
MEASURES = {"spearman": "Spearman correlation", "kendall": "Kendall's tau", "alpha": "Krippendorff's alpha"}
_PAIRINGS = {
    "removed": "Settings are compared at equal fractions removed.",
    "kept": "MoRF and LeRF are compared where one keeps as much as the other removes.",
}


@styled
def agreement_map(
    table: pd.DataFrame, measure: str = "spearman", pairing: str = "removed", confidence: float = 0.95
) -> Figure:
    """`table`: that of `agreement_intervals`. Each pair once; only `spearman` has intervals."""
    settings = in_paper_order(table)
    names = [str(setting) for setting in settings]
    values, low, high = (
        agreement_matrix(table, column, pairing).loc[names, names].to_numpy(dtype=float)[1:, :-1]
        if column in table
        else np.full((len(names) - 1, len(names) - 1), np.nan)
        for column in (measure, *(("low", "high") if measure == "spearman" else ("", "")))
    )
    lower = np.tri(len(names) - 1, dtype=bool)
    few = len(names) <= FEW
    cell = 0.72 if few else 0.5
    figure = Figure(
        figsize=(max(3.6, 1.75 + cell * (len(names) - 1)), 1.3 + 0.75 * cell * (len(names) - 1)), layout="constrained"
    )
    panel = figure.subplots()
    picture = panel.imshow(np.where(lower, values, np.nan), vmin=-1, vmax=1, cmap="RdBu", aspect="auto")
    for row, column in zip(*np.nonzero(lower), strict=True):
        _cell(panel, (row, column), values[row, column], low[row, column], high[row, column], few)
    _names(panel, settings, few)
    figure.colorbar(picture, ax=panel, shrink=0.8, aspect=18, pad=0.02).outline.set_visible(False)
    figure.suptitle(f"{MEASURES.get(measure, measure)} of the methods' rankings,\nmean over the fractions removed")
    figure.supxlabel(_note(low, pairing, confidence), fontsize=NOTE, color=GRAY)
    return figure


def in_paper_order(table: pd.DataFrame) -> list[Setting]:
    """MoRF before LeRF, retrained before not, imputers as given."""
    sides = [table[[f"{field}_{side}" for field in Setting._fields]].itertuples(index=False) for side in "ab"]
    settings = list(dict.fromkeys(Setting(*row) for side in sides for row in side))
    orders = sorted({setting.order for setting in settings}, key=lambda order: (order != "morf", order))
    known = ["retrain", *EVALUATORS, *(setting.evaluator for setting in settings)]
    imputers = list(dict.fromkeys(setting.imputer for setting in settings))
    return sorted(
        settings,
        key=lambda setting: (
            orders.index(setting.order),
            known.index(setting.evaluator),
            imputers.index(setting.imputer),
        ),
    )


def setting_names(settings: Sequence[Setting]) -> list[str]:
    """The evaluator is named where there are several.

    >>> setting_names([Setting("no-retrain", "morf", "linear"), Setting("no-retrain", "lerf", "linear")])
    ['MoRF, linear', 'LeRF, linear']
    """
    several = len({setting.evaluator for setting in settings}) > 1
    return [
        ", ".join(
            [
                order_name(setting.order),
                *([EVALUATORS.get(setting.evaluator, setting.evaluator)] if several else []),
                setting.imputer,
            ]
        )
        for setting in settings
    ]


def _names(panel: Axes, settings: Sequence[Setting], few: bool) -> None:
    names = [literal(name) for name in setting_names(settings)]
    numbered = [f"({place}) {name}" for place, name in enumerate(names, start=1)]
    rows, columns = (names, [name.replace(", ", ",\n") for name in names]) if few else (
        numbered, [f"({place})" for place in range(1, len(names) + 1)])  # fmt: skip
    panel.set_yticks(range(len(names) - 1), rows[1:])
    panel.set_xticks(range(len(names) - 1), columns[:-1])
    panel.tick_params(length=0)
    panel.grid(False)
    panel.spines[:].set_visible(False)


def _cell(panel: Axes, place: tuple[int, int], value: float, low: float, high: float, few: bool) -> None:
    row, column = place
    color = "white" if abs(value) > 0.6 else "black"
    interval = not np.isnan(low)
    text = "–" if np.isnan(value) else short(value)
    style: dict[str, Any] = {"ha": "center", "color": color}
    panel.text(column, row - (0.04 if interval else 0), text, va="bottom" if interval else "center",
               fontsize=8.5 if few else 7, **style)  # fmt: skip
    if interval:
        panel.text(column, row + 0.08, f"[{short(low)}, {short(high)}]", va="top", fontsize=6 if few else 4.6, **style)


def short(value: float) -> str:
    """
    >>> short(-0.424), short(1.0), short(0.3), short(-0.001)
    ('−.42', '1', '.30', '0')
    """
    text = f"{value:.2f}".replace("-", "−").replace("0.", ".")
    return {"1.00": "1", "−1.00": "−1", ".00": "0", "−.00": "0"}.get(text, text)


def _note(low: np.ndarray, pairing: str, confidence: float) -> str:
    text = _PAIRINGS[pairing]
    return text if np.isnan(low).all() else f"{text}\nBrackets: {confidence:.0%} intervals.".replace("%", " %")
