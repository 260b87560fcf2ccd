"""How much the agreement of two settings changes from fixed to linear imputation: the paper's main claims."""

from collections.abc import Iterable, Mapping

import pandas as pd

from reproduction.tables import METHODS
from roadworthy import statistics
from roadworthy.core.results import Point, Predictions
from roadworthy.experiments.items import combined

Side = tuple[str, str]
"""evaluator, order"""
PAIRS: tuple[tuple[Side, Side], ...] = (
    (("no-retrain", "morf"), ("no-retrain", "lerf")),
    (("retrain", "morf"), ("retrain", "lerf")),
    (("retrain", "morf"), ("no-retrain", "morf")),
    (("retrain", "lerf"), ("no-retrain", "lerf")),
)
IMPUTERS = ("fixed", "linear")
"""before and after"""


def pairings(a: Side, b: Side) -> tuple[str, ...]:
    """The paper's comes first: it decides."""
    return ("kept", "removed") if a[1] != b[1] else ("removed",)


def change_table(predictions: Mapping[Point, Predictions], ids: Mapping[Point, str]) -> pd.DataFrame:
    """The changes with their 95 % intervals, images resampled jointly, of the pairs whose points are all there.

    points: the hash of the ids of all points that a row depends on.
    """
    rows = []
    for a, b in PAIRS:
        points = [point for point in predictions if uses(point.evaluator, point.order, point.imputer, a, b)]
        points = [point for point in points if point.method in METHODS]
        if len({(point.evaluator, point.order, point.imputer) for point in points}) < 4:
            continue
        chosen = {point: predictions[point] for point in points}
        images, name = len(predictions[points[0]]), points_id(ids[point] for point in points)
        for pairing in pairings(a, b):
            before, after = (tuple(_setting(side, imputer) for side in (a, b)) for imputer in IMPUTERS)
            change = statistics.agreement_change(chosen, before, after, pairing=pairing)
            rows.append((*a, *b, pairing, *change, images, name))
    columns = ["evaluator_a", "order_a", "evaluator_b", "order_b", "pairing", "change", "low", "high", "images"]
    return pd.DataFrame(rows, columns=[*columns, "points"])


def uses(evaluator: str, order: str, imputer: str, a: Side, b: Side) -> bool:
    return (evaluator, order) in (a, b) and imputer in IMPUTERS


def points_id(ids: Iterable[str]) -> str:
    return combined(sorted(set(ids)))[:32]


def _setting(side: Side, imputer: str) -> statistics.Setting:
    evaluator, order = side
    return statistics.Setting(evaluator, order, imputer)
