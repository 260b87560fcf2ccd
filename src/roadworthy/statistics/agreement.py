"""Agreement between settings: rank correlation of the methods' rankings at each fraction (the paper's consistency)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd

from roadworthy.core.errors import InputError
from roadworthy.statistics.correlation import kendall, krippendorff, rank_alpha, spearman
from roadworthy.statistics.curves import CurveSet, PointPredictions, Setting, Value, curve_sets
from roadworthy.statistics.intervals import Array

MEASURES: Mapping[str, Callable[[Array, Array], float]] = {
    "spearman": spearman,
    "kendall": kendall,
    "alpha": rank_alpha,
}
PAIRINGS = ("removed", "kept")


@dataclass(frozen=True, eq=False)
class Merits:
    """How good the methods are in one setting; higher is better in both orders."""

    methods: tuple[str, ...]
    fractions: tuple[float, ...]
    seeds: tuple[int, ...]
    values: Array
    """`(seeds, methods, fractions)`"""

    def of(self, methods: Sequence[str]) -> Array:
        return self.values[:, [self.methods.index(method) for method in methods]]


def agreement(predictions: PointPredictions, controls: Sequence[str] = (), value: Value = "accuracy") -> pd.DataFrame:
    """Agreement of every two settings on the ranking of the methods, without controls; a mean over the fractions > 0.

    evaluator_a, order_a, imputer_a, model_a, units_a, evaluator_b, order_b, imputer_b, model_b, units_b: the settings ·
    pairing: `removed` compares points with the same fraction removed; `kept` (different orders only) compares the
    fraction removed in one setting with the fraction kept in the other · spearman, kendall (tau-b), alpha
    (Krippendorff's, ordinal, on ranks): averaged over runs first, then ranked · fractions: how many were averaged;
    fractions at which all methods tie have no ranking and are left out · methods: evaluated in both settings ·
    spearman_runs, kendall_runs, alpha_runs: ranked and compared per run (seed), then averaged · spearman_runs_error, …:
    standard error of that mean, NaN for one run · runs: how many.
    MoRF ranks low values first, LeRF high ones. Runs are paired by seed; a setting with one run is compared with every
    run of the other. Where nothing can be compared, values are NaN.
    """
    return agreement_of(merits_by_setting(predictions, controls, value))


def agreement_of(merits: Mapping[Setting, Merits]) -> pd.DataFrame:
    """The table of `agreement`."""
    rows = [
        {**_columns_of(first, "a"), **_columns_of(second, "b"), "pairing": pairing}
        | _agreement(merits[first], merits[second], pairing)
        for first, second in combinations(merits, 2)
        for pairing in (PAIRINGS if first.order != second.order else PAIRINGS[:1])
    ]
    names = [f"{field}_{side}" for side in "ab" for field in Setting._fields] + ["pairing", *MEASURES]
    runs = [f"{measure}_runs{end}" for measure in MEASURES for end in ("", "_error")]
    return pd.DataFrame(rows, columns=[*names, "fractions", "methods", *runs, "runs"])


def agreement_matrix(table: pd.DataFrame, measure: str = "spearman", pairing: str = "removed") -> pd.DataFrame:
    """The table of `agreement` as a square matrix, with a row and a column per setting (evaluator · order · imputer).

    `measure` is one of its columns, such as `kendall` or `spearman_runs`; `pairing` applies to different orders.
    """
    if measure not in table.columns or pairing not in PAIRINGS:
        raise InputError(f"measure={measure!r}, pairing={pairing!r}: choose a column of the table, 'removed' or 'kept'")
    selected = table[(table["pairing"] == pairing) | (table["order_a"] == table["order_b"])]
    names = list(dict.fromkeys([*_labels(table, "a"), *_labels(table, "b")]))
    matrix = pd.DataFrame(np.eye(len(names)), index=names, columns=names)
    for a, b, value in zip(_labels(selected, "a"), _labels(selected, "b"), selected[measure], strict=True):
        matrix.loc[a, b] = matrix.loc[b, a] = value
    return matrix


def overall_alpha(predictions: PointPredictions, controls: Sequence[str] = (), value: Value = "accuracy") -> float:
    """Krippendorff's ordinal alpha over all settings: the raters are settings, the units are methods at a fraction.

    Runs are averaged first. A setting does not rate a fraction at which all methods tie.
    """
    merits = merits_by_setting(predictions, controls, value)
    units = sorted(
        {(round(f, 9), method) for side in merits.values() for f in side.fractions if f > 0 for method in side.methods}
    )
    column_of = {unit: column for column, unit in enumerate(units)}
    ratings = np.full((len(merits), len(units)), np.nan)
    for row, side in enumerate(merits.values()):
        means = np.round(side.values.mean(axis=0), 12)
        for column, fraction in enumerate(side.fractions):
            if fraction > 0 and np.ptp(means[:, column]) > 0:
                ranks = pd.Series(-means[:, column]).rank().to_numpy()
                ratings[row, [column_of[round(fraction, 9), method] for method in side.methods]] = ranks
    return krippendorff(ratings)


def merits_by_setting(predictions: PointPredictions, controls: Sequence[str], value: Value) -> dict[Setting, Merits]:
    methods = compared_methods(predictions, controls)
    return merits_of(curve_sets(predictions, value), methods)


def compared_methods(predictions: PointPredictions, controls: Sequence[str]) -> list[str]:
    methods = sorted({point.method for point in predictions} - set(controls))
    if len(methods) < 2:
        raise InputError(
            f"agreement needs at least 2 methods that are not controls, here: {', '.join(methods) or 'none'}"
        )
    return methods


def merits_of(curves: Mapping[Setting, CurveSet], methods: Sequence[str]) -> dict[Setting, Merits]:
    return {setting: _merits(setting, curve_set, methods) for setting, curve_set in curves.items()}


def _merits(setting: Setting, curve_set: CurveSet, methods: Sequence[str]) -> Merits:
    evaluated = tuple(method for method in methods if method in curve_set.values)
    sign = -1.0 if setting.order == "morf" else 1.0
    means = [sign * curve_set.values[method].mean(axis=-1, dtype=np.float64) for method in evaluated]
    shape = (len(evaluated), len(curve_set.seeds), len(curve_set.fractions))
    return Merits(evaluated, curve_set.fractions, curve_set.seeds, np.reshape(means, shape).swapaxes(0, 1))


def _agreement(first: Merits, second: Merits, pairing: str) -> dict[str, float | int]:
    methods = [method for method in first.methods if method in second.methods]
    columns = paired_columns(first.fractions, second.fractions, pairing) if len(methods) > 1 else []
    a, b = first.of(methods), second.of(methods)
    averaged = _per_fraction(a.mean(axis=0), b.mean(axis=0), columns)
    if len(first.seeds) == len(second.seeds) == 1:  # the mean is the run
        per_run = [_mean(averaged)]
    else:
        per_run = [_mean(_per_fraction(a[i], b[j], columns)) for i, j in _paired_runs(first.seeds, second.seeds)]
    defined = np.reshape([run for run in per_run if not np.isnan(run[0])], (-1, len(MEASURES)))
    row: dict[str, float | int] = dict(zip(MEASURES, _mean(averaged), strict=True))
    for measure, runs in zip(MEASURES, defined.T, strict=True):
        row[f"{measure}_runs"] = float(runs.mean()) if len(runs) else float("nan")
        error = float(runs.std(ddof=1) / np.sqrt(len(runs))) if len(runs) > 1 else float("nan")
        row[f"{measure}_runs_error"] = error
    return row | {"fractions": len(averaged), "methods": len(methods), "runs": len(defined)}


def _per_fraction(first: Array, second: Array, columns: Sequence[tuple[int, int]]) -> Array:
    """Measures `(fractions, measures)` of merits `(methods, fractions)`, at the fractions where both sides rank."""
    # Averages over runs have rounding errors, which must not break ties.
    sides = [(np.round(first[:, i], 12), np.round(second[:, j], 12)) for i, j in columns]
    rows = [[measure(a, b) for measure in MEASURES.values()] for a, b in sides if np.ptp(a) > 0 and np.ptp(b) > 0]
    return np.reshape(np.asarray(rows, dtype=np.float64), (-1, len(MEASURES)))


def _mean(measures: Array) -> Array:
    return measures.mean(axis=0) if len(measures) else np.full(len(MEASURES), np.nan)


def paired_columns(first: Sequence[float], second: Sequence[float], pairing: str) -> list[tuple[int, int]]:
    """Columns of the fractions to compare. Fraction 0 is left out: before removal there is nothing to rank."""
    column_of = {round(fraction, 9): column for column, fraction in enumerate(second)}
    partners = [(column, round(1 - f if pairing == "kept" else f, 9)) for column, f in enumerate(first) if f > 0]
    return [(column, column_of[other]) for column, other in partners if other > 0 and other in column_of]


def _paired_runs(first: Sequence[int], second: Sequence[int]) -> list[tuple[int, int]]:
    """Indices of the runs to compare: those with equal seeds, or all with the only run of the other side."""
    if len(first) == 1 or len(second) == 1:
        return [(i, j) for i in range(len(first)) for j in range(len(second))]
    return [(first.index(seed), second.index(seed)) for seed in first if seed in second]


def _columns_of(setting: Setting, side: str) -> dict[str, str]:
    return {f"{field}_{side}": name for field, name in setting._asdict().items()}


def _labels(table: pd.DataFrame, side: str) -> list[str]:
    rows = table[[f"{field}_{side}" for field in Setting._fields]].itertuples(index=False)
    return [str(Setting(*row)) for row in rows]
