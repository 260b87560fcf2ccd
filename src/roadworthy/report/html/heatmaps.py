"""Tables with colored cells: agreement of the settings, what removal costs each class. Blue is good, orange is bad."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from roadworthy.statistics import Setting

MAX_CLASSES = 24


class Cell(NamedTuple):
    text: str
    heat: int | None
    """−10 to 10, None where there is no number"""
    interval: str = ""


class Heatmap(NamedTuple):
    title: str
    columns: Sequence[str]
    rows: Sequence[tuple[str, Sequence[Cell]]]
    note: str = ""


# ── agreement ────────────────────────────────────────────────────────────────────────────────────────────────────────

_PAIRINGS = {
    "removed": "",
    "kept": "Different orders are compared where one has removed as much as the other has kept.",
}


def agreement_heatmaps(table: pd.DataFrame, main: tuple[str, str]) -> list[Heatmap]:
    """Settings against settings, those of the conclusion first; one heatmap per way of pairing the fractions."""
    settings = _settings(table, main)
    names = dict(zip(settings, _shortened(settings), strict=True))
    heatmaps = []
    for pairing in [name for name in _PAIRINGS if (table["pairing"] == name).any()]:
        rows = table[(table["pairing"] == pairing) | (table["order_a"] == table["order_b"])]
        cells = {}
        for row in rows.to_dict("records"):
            a, b = (Setting(*(str(row[f"{field}_{side}"]) for field in Setting._fields)) for side in "ab")
            cells[a, b] = cells[b, a] = _correlation(row["spearman"], row.get("low", np.nan), row.get("high", np.nan))
        same = Cell("1", None)
        lines = [
            (names[a], [same if a == b else cells.get((a, b), Cell("–", None)) for b in settings]) for a in settings
        ]
        heatmaps.append(
            Heatmap(f"Agreement at equal fractions {pairing}", list(names.values()), lines, _PAIRINGS[pairing])
        )
    return heatmaps  # fmt: skip


def _settings(table: pd.DataFrame, main: tuple[str, str]) -> list[Setting]:
    sides = [
        table[[f"{field}_{side}" for field in Setting._fields]].itertuples(index=False, name=None) for side in "ab"
    ]
    found = dict.fromkeys(Setting(*map(str, row)) for side in sides for row in side)
    blocks = list(dict.fromkeys((setting.evaluator, setting.imputer) for setting in found))
    return sorted(
        found,
        key=lambda setting: (
            (setting.evaluator, setting.imputer) != main,
            blocks.index((setting.evaluator, setting.imputer)),
            setting.order != "morf",
        ),
    )


def _shortened(settings: Sequence[Setting]) -> list[str]:
    """Names without the evaluator where there is only one."""
    several = len({setting.evaluator for setting in settings}) > 1
    orders = {"morf": "MoRF", "lerf": "LeRF"}
    return [
        " · ".join([*([s.evaluator] if several else []), orders.get(s.order, s.order), s.imputer]) for s in settings
    ]


def _correlation(value: float, low: float, high: float) -> Cell:
    if np.isnan(value):
        return Cell("–", None)
    interval = "" if np.isnan(low) else f"{low:+.2f} to {high:+.2f}".replace("-", "−")
    return Cell(f"{value:+.2f}".replace("-", "−"), round(value * 10), interval)


# ── classes ──────────────────────────────────────────────────────────────────────────────────────────────────────────

_GAINS = {
    ("morf", "lerf"): (
        "MoRF loss − LeRF loss",
        "How much more accuracy a class loses when its most relevant pixels are removed than when its least relevant "
        "ones are.",
    ),
    ("morf",): ("MoRF loss", "Accuracy that a class loses when its most relevant pixels are removed."),
    ("lerf",): ("LeRF loss", "Accuracy that a class loses when its least relevant pixels are removed: less is better."),
}


def class_heatmap(table: pd.DataFrame, methods: Sequence[str]) -> Heatmap | None:
    """Classes against methods for one evaluator and imputer; None where no method was evaluated in all orders.

    `table` is that of `per_class` with a column `name`. Blue is always better. Of many classes, those that lose most
    and least by the first method are shown.
    """
    table = table[table["method"].isin(list(methods))]
    losses = {
        str(order): rows.pivot(index="label", columns="method", values="drop") for order, rows in table.groupby("order")
    }
    orders = tuple(order for order in ("morf", "lerf") if order in losses)
    if orders not in _GAINS:
        return None
    values = losses["morf"] - losses["lerf"] if len(orders) == 2 else losses[orders[0]]
    shown_methods = [name for name in methods if name in values and values[name].notna().any()]
    if not shown_methods:
        return None
    sign = -1 if orders == ("lerf",) else 1
    shown = list((sign * values[shown_methods[0]]).sort_values(ascending=False, kind="stable").index)
    title, note = _GAINS[orders]
    if len(shown) > MAX_CLASSES:
        half = MAX_CLASSES // 2
        note += f" {MAX_CLASSES} of {len(shown)} classes: the best and the worst for {shown_methods[0]}."
        shown = shown[:half] + shown[-half:]
    facts = table.drop_duplicates("label").set_index("label")
    rows = [
        (
            str(facts["name"][label]),
            [Cell(f"{facts['images'][label]:,}", None), *(_gain(values[name][label], sign) for name in shown_methods)],
        )
        for label in shown
    ]
    return Heatmap(title, ["images", *shown_methods], rows, note)  # fmt: skip


def _gain(value: float, sign: int) -> Cell:
    if np.isnan(value):
        return Cell("–", None)
    return Cell(
        f"{value + 0.0:.2f}".replace("-0.00", "0.00").replace("-", "−"), sign * round(max(-1.0, min(1.0, value)) * 10)
    )
