"""Confidence intervals of agreement: the paired bootstrap over images, for every two settings."""

from collections.abc import Hashable, Mapping, Sequence

import numpy as np
import pandas as pd
from scipy import stats

from roadworthy.statistics.agreement import Merits, agreement, merits_by_setting, paired_columns
from roadworthy.statistics.bootstrap import resampled_means
from roadworthy.statistics.curves import CurveSet, PointPredictions, Setting, Value, curve_sets
from roadworthy.statistics.intervals import CONFIDENCE, Array

DRAWS = 1000


def agreement_intervals(
    predictions: PointPredictions,
    controls: Sequence[str] = (),
    value: Value = "accuracy",
    confidence: float = CONFIDENCE,
) -> pd.DataFrame:
    """The table of `agreement` with the interval `low`, `high` of its `spearman`.

    Each draw takes the same images for all methods and settings. A resample adds noise to ranks that are already noisy,
    so ranks of close methods vary more between draws than between test sets, and the interval tends to reach too low.
    The variance between training runs is included only with ten seeds or more.
    """
    table = agreement(predictions, controls, value)
    merits, curves = merits_by_setting(predictions, controls, value), curve_sets(predictions, value)
    ranks = {setting: _drawn_ranks(setting, curves[setting], merits[setting].methods) for setting in merits}
    ends = [_interval(row, merits, ranks, confidence) for row in table.to_dict("records")]
    return table.assign(low=[low for low, _ in ends], high=[high for _, high in ends])


def _drawn_ranks(setting: Setting, curve_set: CurveSet, methods: Sequence[str]) -> Array:
    """Ranks `(draws, methods, fractions)`; the best method has the highest rank in both orders."""
    values = np.stack([curve_set.values[method] for method in methods])  # methods, seeds, fractions, images
    count, seeds, fractions, images = values.shape
    rows = values.transpose(0, 2, 1, 3).reshape(count * fractions, seeds, images).astype(np.float64)
    means = resampled_means(rows, DRAWS).reshape(DRAWS, count, fractions)
    sign = -1.0 if setting.order == "morf" else 1.0
    return np.asarray(stats.rankdata(np.round(sign * means, 12), axis=1))


def _interval(
    row: Mapping[Hashable, object], merits: dict[Setting, Merits], ranks: dict[Setting, Array], confidence: float
) -> tuple[float, float]:
    first, second = (Setting(*(str(row[f"{field}_{side}"]) for field in Setting._fields)) for side in "ab")
    methods = [method for method in merits[first].methods if method in merits[second].methods]
    columns = paired_columns(merits[first].fractions, merits[second].fractions, str(row["pairing"]))
    if len(methods) < 2 or not columns:
        return np.nan, np.nan
    first_columns, second_columns = zip(*columns, strict=True)
    a = _selected(ranks[first], merits[first], methods, first_columns)
    b = _selected(ranks[second], merits[second], methods, second_columns)
    per_fraction = _correlations(a, b)
    defined = per_fraction[~np.isnan(per_fraction).all(axis=1)]  # draws with a ranking at some fraction
    if not len(defined):
        return np.nan, np.nan
    tail = 50 * (1 - confidence)
    low, high = np.percentile(np.nanmean(defined, axis=1), [tail, 100 - tail])
    return float(low), float(high)


def _selected(ranks: Array, merits: Merits, methods: Sequence[str], columns: Sequence[int]) -> Array:
    """Ranks of these methods at these fractions; ranked again, because other methods are left out."""
    rows = [merits.methods.index(method) for method in methods]
    return np.asarray(stats.rankdata(ranks[:, rows][:, :, columns], axis=1))


def _correlations(a: Array, b: Array) -> Array:
    """Correlations `(draws, fractions)` of ranks `(draws, methods, fractions)`; NaN where one side ties throughout."""
    a, b = a - a.mean(axis=1, keepdims=True), b - b.mean(axis=1, keepdims=True)
    scale = np.sqrt(np.square(a).sum(axis=1) * np.square(b).sum(axis=1))
    return np.asarray(np.divide((a * b).sum(axis=1), scale, out=np.full(scale.shape, np.nan), where=scale > 0))
