"""Do the settings agree on the methods? Rankings per fraction, compared between settings (`PAPER` 5)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd

from roadworthy.core.errors import InputError
from roadworthy.statistics.correlation import kendall, krippendorff, rank_alpha, spearman
from roadworthy.statistics.curves import PointPredictions, Setting, Sheet, Value, sheets
from roadworthy.statistics.intervals import Array

MEASURES: Mapping[str, Callable[[Array, Array], float]] = {
    "spearman": spearman,
    "kendall": kendall,
    "alpha": rank_alpha,
}
PAIRINGS = ("removed", "kept")


@dataclass(frozen=True, eq=False)
class Merits:
    """How good the methods are in one setting, higher = better whatever the order."""

    methods: tuple[str, ...]
    fractions: tuple[float, ...]
    seeds: tuple[int, ...]
    merit: Array
    """`(seeds, methods, fractions)`"""

    def of(self, methods: Sequence[str]) -> Array:
        return self.merit[:, [self.methods.index(method) for method in methods]]


def agreement(predictions: PointPredictions, controls: Sequence[str] = (), value: Value = "accuracy") -> pd.DataFrame:
    """Agreement of every two settings on the ranking of the methods (controls left out), a mean over fractions > 0.

    evaluator_a, order_a, imputer_a, evaluator_b, order_b, imputer_b: the settings · pairing: `removed` compares equal shares
    removed, `kept` (unlike orders only) the share removed in one with the share kept in the other ·
    spearman, kendall (tau-b), alpha (Krippendorff's, ordinal, on ranks): runs averaged first, then ranked ·
    fractions: the points averaged; where all methods tie there is no ranking and the point is left out ·
    methods: evaluated in both settings · spearman_runs, kendall_runs, alpha_runs: ranked and compared per run (seed),
    then averaged · spearman_runs_error, …: standard error of that mean, NaN for one run · runs: how many.
    MoRF ranks low values first, LeRF high ones. Runs are paired by seed; a setting with one run meets every run of
    the other. Where nothing can be compared, values are NaN.
    """
    merits = merits_of(predictions, controls, value)
    rows = [
        {**_names(first, "a"), **_names(second, "b"), "pairing": pairing}
        | _agreement(merits[first], merits[second], pairing)
        for first, second in combinations(merits, 2)
        for pairing in (PAIRINGS if first.order != second.order else PAIRINGS[:1])
    ]
    names = [f"{field}_{side}" for side in "ab" for field in Setting._fields] + ["pairing", *MEASURES]
    runs = [f"{measure}_runs{end}" for measure in MEASURES for end in ("", "_error")]
    return pd.DataFrame(rows, columns=[*names, "fractions", "methods", *runs, "runs"])


def agreement_matrix(table: pd.DataFrame, measure: str = "spearman", pairing: str = "removed") -> pd.DataFrame:
    """The table of `agreement` as a square, a row and a column per setting (evaluator · order · imputer).

    `measure` is one of its columns, such as `kendall` or `spearman_runs`; `pairing` is for settings of unlike orders.
    """
    if measure not in table.columns or pairing not in PAIRINGS:
        raise InputError(f"measure={measure!r}, pairing={pairing!r}: choose a column of the table, 'removed' or 'kept'")
    first, second = (_settings(table, side) for side in "ab")
    names = list(dict.fromkeys([*first, *second]))
    square = pd.DataFrame(np.eye(len(names)), index=names, columns=names)
    wanted = (table["pairing"] == pairing) | (table["order_a"] == table["order_b"])
    for a, b, found in zip(first[wanted], second[wanted], table.loc[wanted, measure], strict=True):
        square.loc[a, b] = square.loc[b, a] = found
    return square


def overall_alpha(predictions: PointPredictions, controls: Sequence[str] = (), value: Value = "accuracy") -> float:
    """Krippendorff's ordinal alpha over all settings at once: raters are settings, units are methods at a fraction.

    Runs are averaged first; a fraction at which a setting does not rank is not rated by it.
    """
    merits = merits_of(predictions, controls, value)
    units = sorted({(round(f, 9), m) for one in merits.values() for f in one.fractions if f > 0 for m in one.methods})
    place = {unit: column for column, unit in enumerate(units)}
    ratings = np.full((len(merits), len(units)), np.nan)
    for row, one in enumerate(merits.values()):
        merit = np.round(one.merit.mean(axis=0), 12)
        for column, fraction in enumerate(one.fractions):
            if fraction > 0 and np.ptp(merit[:, column]) > 0:
                ranks = pd.Series(-merit[:, column]).rank().to_numpy()
                ratings[row, [place[round(fraction, 9), method] for method in one.methods]] = ranks
    return krippendorff(ratings)


def merits_of(predictions: PointPredictions, controls: Sequence[str], value: Value) -> dict[Setting, Merits]:
    methods = sorted({point.method for point in predictions} - set(controls))
    if len(methods) < 2:
        raise InputError(
            f"agreement needs at least 2 methods that are no controls, here: {', '.join(methods) or 'none'}"
        )
    return {setting: _merit(setting, sheet, methods) for setting, sheet in sheets(predictions, value).items()}


def _merit(setting: Setting, sheet: Sheet, methods: Sequence[str]) -> Merits:
    there = tuple(method for method in methods if method in sheet.values)
    sign = -1.0 if setting.order == "morf" else 1.0
    means = [sign * sheet.values[method].mean(axis=-1, dtype=np.float64) for method in there]
    shape = (len(there), len(sheet.seeds), len(sheet.fractions))
    return Merits(there, sheet.fractions, sheet.seeds, np.reshape(means, shape).swapaxes(0, 1))


def _agreement(first: Merits, second: Merits, pairing: str) -> dict[str, float | int]:
    methods = [method for method in first.methods if method in second.methods]
    columns = columns_of(first.fractions, second.fractions, pairing) if len(methods) > 1 else []
    a, b = first.of(methods), second.of(methods)
    averaged = _per_fraction(a.mean(axis=0), b.mean(axis=0), columns)
    runs = [_mean(_per_fraction(a[i], b[j], columns)) for i, j in _runs(first.seeds, second.seeds)]
    known = np.reshape([run for run in runs if not np.isnan(run[0])], (-1, len(MEASURES)))
    found: dict[str, float | int] = dict(zip(MEASURES, _mean(averaged), strict=True))
    for measure, column in zip(MEASURES, known.T, strict=True):
        found[f"{measure}_runs"] = float(column.mean()) if len(column) else float("nan")
        spread = float(column.std(ddof=1) / np.sqrt(len(column))) if len(column) > 1 else float("nan")
        found[f"{measure}_runs_error"] = spread
    return found | {"fractions": len(averaged), "methods": len(methods), "runs": len(known)}


def _per_fraction(first: Array, second: Array, columns: Sequence[tuple[int, int]]) -> Array:
    """Measures `(fractions, measures)` of merits `(methods, fractions)`, at the fractions where both sides rank."""
    # Averages over runs carry rounding dust, which must not part what is tied.
    sides = [(np.round(first[:, i], 12), np.round(second[:, j], 12)) for i, j in columns]
    found = [[measure(a, b) for measure in MEASURES.values()] for a, b in sides if np.ptp(a) > 0 and np.ptp(b) > 0]
    return np.reshape(np.asarray(found, dtype=np.float64), (-1, len(MEASURES)))


def _mean(measures: Array) -> Array:
    return measures.mean(axis=0) if len(measures) else np.full(len(MEASURES), np.nan)


def columns_of(first: Sequence[float], second: Sequence[float], pairing: str) -> list[tuple[int, int]]:
    """Columns of the points that are compared. Point 0, before anything is removed, ranks nothing and is left out."""
    place = {round(fraction, 9): column for column, fraction in enumerate(second)}
    wanted = [(column, round(1 - f if pairing == "kept" else f, 9)) for column, f in enumerate(first) if f > 0]
    return [(column, place[other]) for column, other in wanted if other > 0 and other in place]


def _runs(first: Sequence[int], second: Sequence[int]) -> list[tuple[int, int]]:
    """Places of the runs that are compared: equal seeds, or all with the only one."""
    if len(first) == 1 or len(second) == 1:
        return [(i, j) for i in range(len(first)) for j in range(len(second))]
    return [(first.index(seed), second.index(seed)) for seed in first if seed in second]


def _names(setting: Setting, side: str) -> dict[str, str]:
    return {f"{field}_{side}": name for field, name in setting._asdict().items()}


def _settings(table: pd.DataFrame, side: str) -> pd.Series:
    return table[[f"{field}_{side}" for field in Setting._fields]].agg(" · ".join, axis=1)
