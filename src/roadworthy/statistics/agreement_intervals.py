"""How sure is an agreement of rankings? The paired bootstrap over images, for every two settings."""

from collections.abc import Hashable, Mapping, Sequence

import numpy as np
import pandas as pd
from scipy import stats

from roadworthy.statistics.agreement import Merits, agreement, columns_of, merits_of
from roadworthy.statistics.bootstrap import resampled_means
from roadworthy.statistics.curves import PointPredictions, Setting, Value, sheets
from roadworthy.statistics.intervals import LEVEL, Array

DRAWS = 1000


def agreement_intervals(
    predictions: PointPredictions, controls: Sequence[str] = (), value: Value = "accuracy", level: float = LEVEL
) -> pd.DataFrame:
    """The table of `agreement` with `low` and `high` of its `spearman`.

    Each draw takes the same images for all methods and settings. Ranks of methods that are close vary more than they
    do from one test set to another, as a resample adds noise to what is noisy: the interval reaches rather too low.
    The luck of training is in it only where ten seeds or more were run.
    """
    table = agreement(predictions, controls, value)
    merits = merits_of(predictions, controls, value)
    ranks = {setting: _drawn_ranks(predictions, setting, merits[setting], value) for setting in merits}
    ends = [_interval(row, merits, ranks, level) for row in table.to_dict("records")]
    return table.assign(low=[low for low, _ in ends], high=[high for _, high in ends])


def _drawn_ranks(predictions: PointPredictions, setting: Setting, merits: Merits, value: Value) -> Array:
    """Ranks of the methods, `(draws, methods, fractions)`, the best one highest whatever the order."""
    own = {
        point: one
        for point, one in predictions.items()
        if Setting(point.evaluator, point.order, point.imputer) == setting
    }
    (sheet,) = sheets(own, value).values()
    values = np.stack([sheet.values[method] for method in merits.methods])  # methods, seeds, fractions, images
    methods, seeds, fractions, images = values.shape
    rows = values.transpose(0, 2, 1, 3).reshape(methods * fractions, seeds, images).astype(np.float64)
    means = resampled_means(rows, DRAWS).reshape(DRAWS, methods, fractions)
    sign = -1.0 if setting.order == "morf" else 1.0
    return np.asarray(stats.rankdata(np.round(sign * means, 12), axis=1))


def _interval(
    row: Mapping[Hashable, object], merits: dict[Setting, Merits], ranks: dict[Setting, Array], level: float
) -> tuple[float, float]:
    first, second = (Setting(*(str(row[f"{field}_{side}"]) for field in Setting._fields)) for side in "ab")
    methods = [method for method in merits[first].methods if method in merits[second].methods]
    columns = columns_of(merits[first].fractions, merits[second].fractions, str(row["pairing"]))
    if len(methods) < 2 or not columns:
        return np.nan, np.nan
    here, there = zip(*columns, strict=True)
    a = _picked(ranks[first], merits[first], methods, here)
    b = _picked(ranks[second], merits[second], methods, there)
    found = _correlations(a, b)
    found = found[~np.isnan(found).all(axis=1)]  # draws in which something ranks
    drawn = np.nanmean(found, axis=1)
    tail = 50 * (1 - level)
    low, high = np.percentile(drawn, [tail, 100 - tail]) if len(drawn) else (np.nan, np.nan)
    return float(low), float(high)


def _picked(ranks: Array, merits: Merits, methods: Sequence[str], columns: Sequence[int]) -> Array:
    """Ranks of these methods at these fractions; ranked anew, as some methods may be left out."""
    rows = [merits.methods.index(method) for method in methods]
    return np.asarray(stats.rankdata(ranks[:, rows][:, :, columns], axis=1))


def _correlations(a: Array, b: Array) -> Array:
    """`(draws, fractions)` of ranks `(draws, methods, fractions)`; NaN where a side does not rank."""
    a, b = a - a.mean(axis=1, keepdims=True), b - b.mean(axis=1, keepdims=True)
    scale = np.sqrt(np.square(a).sum(axis=1) * np.square(b).sum(axis=1))
    return np.asarray(np.divide((a * b).sum(axis=1), scale, out=np.full(scale.shape, np.nan), where=scale > 0))
