"""What can be told of a study that is not finished: curves are whole, or they wait."""

from collections import Counter
from collections.abc import Iterable

import pandas as pd

from roadworthy.core.results import Point, Predictions
from roadworthy.statistics.curves import PointPredictions

_COLUMNS = ["method", "order", "imputer", "evaluator", "there", "asked"]


def whole_curves(
    predictions: PointPredictions, asked: Iterable[Point]
) -> tuple[dict[Point, Predictions], pd.DataFrame]:
    """The PointPredictions of those curves of which every asked point is there, and a table of the others.

    method, order, imputer, evaluator: the curve · there, asked: how many of its points (fractions × seeds).
    """
    wanted = list(asked)
    counts, found = Counter(map(_curve, wanted)), Counter(_curve(point) for point in wanted if point in predictions)
    gaps = {curve: count for curve, count in counts.items() if found[curve] < count}
    whole = {point: predictions[point] for point in wanted if _curve(point) not in gaps}
    rows = [(*curve, found[curve], count) for curve, count in gaps.items()]
    return whole, pd.DataFrame(rows, columns=_COLUMNS)


def _curve(point: Point) -> tuple[str, str, str, str]:
    return point[:4]
