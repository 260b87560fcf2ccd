"""Tables with colored cells: agreement of the settings, accuracy lost per class."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from roadworthy import statistics

MAX_CLASSES = 24


class Cell(NamedTuple):
    text: str
    heat: int | None
    """−10 to 10, None where there is no number"""


class Heatmap(NamedTuple):
    title: str
    columns: Sequence[str]
    rows: Sequence[tuple[str, Sequence[Cell]]]
    note: str = ""


def agreement_heatmaps(table: pd.DataFrame) -> list[Heatmap]:
    """Settings against settings, one heatmap per way of pairing the fractions."""
    heatmaps = []
    notes = {
        "removed": "Compared at equal fractions removed.",
        "kept": "Different orders are compared where one has removed as much as the other has kept.",
    }
    for pairing in [name for name in notes if (table["pairing"] == name).any()]:
        matrix = statistics.agreement_matrix(table, "spearman", pairing)
        names = _shortened(list(matrix.index))
        rows = [
            (name, [_signed(value) for value in row])
            for name, row in zip(names, matrix.to_numpy().tolist(), strict=True)
        ]
        heatmaps.append(Heatmap(f"equal fraction {pairing}", names, rows, notes[pairing]))
    return heatmaps


def _shortened(names: Sequence[str]) -> list[str]:
    """Names of settings, without the evaluator where there is only one.

    >>> _shortened(["no-retrain · morf · linear", "no-retrain · lerf · linear"])
    ['MoRF · linear', 'LeRF · linear']
    """
    parts = [name.split(" · ", 2) for name in names]
    several = len({part[0] for part in parts}) > 1
    orders = {"morf": "MoRF", "lerf": "LeRF"}
    return [
        " · ".join([*([evaluator] if several else []), orders.get(order, order), imputer])
        for evaluator, order, imputer in parts
    ]


def _signed(value: float) -> Cell:
    return Cell("–", None) if np.isnan(value) else Cell(f"{value:+.2f}", round(value * 10))


def class_heatmaps(table: pd.DataFrame, methods: Sequence[str]) -> list[Heatmap]:
    """Classes against methods for one evaluator and imputer, one heatmap per order.

    `table` is that of `per_class` with a column `name`. Of many classes, those that lose most and least by the first
    method are shown.
    """
    table = table[table["method"].isin(list(methods))]
    first = table[table["method"] == methods[0]].groupby("label")["drop"].mean().sort_values(ascending=False)
    shown, note = list(first.index), ""
    if len(shown) > MAX_CLASSES:
        half = MAX_CLASSES // 2
        note = f"{MAX_CLASSES} of {len(shown)} classes: those that lose most and least by {methods[0]}."
        shown = shown[:half] + shown[-half:]
    titles = {"morf": "MoRF: a higher loss is better", "lerf": "LeRF: a lower loss is better"}
    return [
        Heatmap(titles.get(str(order), str(order)), ["images", *methods], _class_rows(block, shown, methods), note)
        for order, block in sorted(table.groupby("order"), key=lambda pair: pair[0] != "morf")
    ]


def _class_rows(block: pd.DataFrame, labels: Sequence[int], methods: Sequence[str]) -> list[tuple[str, list[Cell]]]:
    drops = block.pivot(index="label", columns="method", values="drop").reindex(
        columns=list(methods), index=list(labels)
    )
    facts = block.drop_duplicates("label").set_index("label").loc[list(labels)]
    return [
        (str(name), [Cell(f"{images:,}", None), *map(_loss, row)])
        for name, images, row in zip(facts["name"], facts["images"], drops.to_numpy().tolist(), strict=True)
    ]


def _loss(value: float) -> Cell:
    return Cell("–", None) if np.isnan(value) else Cell(f"{value:.2f}", round(max(-1.0, min(1.0, value)) * 10))
