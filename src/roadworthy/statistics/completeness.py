"""Unfinished runs: which curves are complete, and how many points the others lack."""

from collections import Counter
from collections.abc import Iterable

import pandas as pd

from roadworthy.core.results import Point, Predictions
from roadworthy.statistics.curves import CURVE_COLUMNS, PointPredictions, curve_coordinates, setting_of


def complete_curves(
    predictions: PointPredictions, expected: Iterable[Point]
) -> tuple[dict[Point, Predictions], pd.DataFrame]:
    """The predictions of the curves whose expected points were all evaluated, and a table of the other curves.

    method, order, imputer, evaluator, model, units: the curve · evaluated, expected: how many of its points (fractions
    × seeds) were evaluated, and how many there should be.
    """
    points = list(expected)
    totals = Counter(map(_curve, points))
    evaluated = Counter(_curve(point) for point in points if point in predictions)
    incomplete = {curve: total for curve, total in totals.items() if evaluated[curve] < total}
    complete = {point: predictions[point] for point in points if _curve(point) not in incomplete}
    rows = [(*curve, evaluated[curve], total) for curve, total in incomplete.items()]
    return complete, pd.DataFrame(rows, columns=[*CURVE_COLUMNS, "evaluated", "expected"])


def _curve(point: Point) -> tuple[str, ...]:
    return curve_coordinates(point.method, setting_of(point))
