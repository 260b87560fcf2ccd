"""Gather the data of all figures from a run directory; for missing parts, why they are missing and how to get them."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from roadworthy import statistics
from roadworthy.core.errors import DataError, InputError, RoadworthyError
from roadworthy.core.results import Point, Predictions
from roadworthy.experiments.auditor import read_table
from roadworthy.experiments.plans.plan import CONTROLS, Plan
from roadworthy.experiments.runner import Runtime, Work, runtimes
from roadworthy.experiments.scenes import scenes
from roadworthy.experiments.stores.run_directory import Store
from roadworthy.report.figures.data import FigureData
from roadworthy.report.figures.pictures import Scene

AUDIT: Mapping[str, tuple[str, ...]] = {
    "masks": ("method", "order", "fraction", "accuracy", "low", "high", "chance", "bits", "bits_if_optimal"),
    "detection": ("imputer", "masks", "fraction", "error", "low", "high", "guess"),
    "geometry": ("method", "order", "fraction", "gamma", "clipped", "optimum"),
}
"""The audit's tables, and the columns that figures need."""


def gathered(
    folder: Path,
    predictions: Mapping[Point, Predictions],
    work: Work | None = None,
    plan: Plan | None = None,
    method: str | None = None,
) -> FigureData:
    """The data of all figures; `predictions` are of complete curves, `plan` locates the images."""
    gaps: dict[str, str] = {}
    controls = controls_among({point.method for point in predictions}, work.plan if work else None)
    chosen = _chosen(predictions, controls, method)
    curves = statistics.curves(predictions)
    audit = {name: _audit(folder, name, gaps) for name in AUDIT}
    return FigureData(
        curves,
        _agreement(predictions, controls, gaps),
        _runtimes(folder, work, gaps),
        audit,
        _scenes(folder, predictions, work, plan, controls, chosen, gaps),
        controls,
        len(np.unique(next(iter(predictions.values())).labels)),
        chosen,
        gaps | _curve_gaps(curves, audit["masks"], chosen),
    )


def controls_among(methods: Collection[str], plan: Plan | None) -> tuple[str, ...]:
    """By the plan; without one (a saved comparison), by the names that controls always have."""
    if plan is not None:
        return tuple(sorted(set(methods) - set(plan.methods)))
    return tuple(sorted(name for name in methods if name in CONTROLS or name.endswith((" blurred", " inverted"))))


def _chosen(predictions: Mapping[Point, Predictions], controls: Sequence[str], method: str | None) -> str:
    there = [name for name in dict.fromkeys(point.method for point in predictions) if name not in controls]
    if method is not None and method not in there:
        raise InputError(f"method {method!r} has no whole curve here; there are: {', '.join(there)}")
    if method is not None or not there:
        return method or next(iter(predictions)).method
    table = statistics.ranking(predictions, controls)
    asked = table[~table["control"]]
    return str(
        (asked[asked["imputer"] == "linear"] if (asked["imputer"] == "linear").any() else asked)["method"].iloc[0]
    )


def _curve_gaps(curves: pd.DataFrame, masks: pd.DataFrame, method: str) -> dict[str, str]:
    gaps = {}
    trained = curves[(curves["evaluator"] == "retrain") & (curves["imputer"] == "linear")]
    if trained.empty:
        gaps["retrain"] = (
            'no curves of the evaluator "retrain" with imputer "linear": add them to [evaluation] and run again'
        )
    if curves.loc[curves["method"] == method, "evaluator"].nunique() < 2:
        gaps["evaluators"] = (
            f'{method} has one evaluator only: add "retrain" to evaluators in [evaluation] and run the plan again'
        )
    evaluated, audited = (set(table.loc[table["order"] == "morf", "method"]) for table in (curves, masks))
    if not evaluated & audited:
        gaps["masked scores"] = (
            "no method has both MoRF curves and audited MoRF masks: evaluate and audit a method in MoRF order"
        )
    return gaps


def _agreement(predictions: Mapping[Point, Predictions], controls: Sequence[str], gaps: dict[str, str]) -> pd.DataFrame:
    try:
        table = statistics.agreement(predictions, controls)
    except InputError as error:
        gaps["agreement"] = f"{error}: add methods to the plan and run it again"
        return pd.DataFrame()
    if table.empty:
        gaps["agreement"] = "one setting only: add an order, an imputer or an evaluator to the plan and run it again"
    return table


def _runtimes(folder: Path, work: Work | None, gaps: dict[str, str]) -> pd.DataFrame:
    table = pd.DataFrame(runtimes(work, Store(folder)) if work else [], columns=Runtime._fields)
    if table.empty:
        gaps["runtimes"] = "no durations were noted: fill the store with `roadworthy run`"
    return table


def _audit(folder: Path, name: str, gaps: dict[str, str]) -> pd.DataFrame:
    table, columns = read_table(folder, name), AUDIT[name]
    if table is None:
        gaps[name] = f"there is no audit/{name}.csv: make it with `roadworthy audit {folder}`"
        return pd.DataFrame(columns=columns)
    if lacking := [column for column in columns if column not in table]:
        path = folder / "audit" / f"{name}.csv"
        raise DataError(f"{path} has no column {lacking[0]!r}: make it again with `roadworthy audit {folder}`")
    return table


def _scenes(
    folder: Path,
    predictions: Mapping[Point, Predictions],
    work: Work | None,
    plan: Plan | None,
    controls: Sequence[str],
    method: str,
    gaps: dict[str, str],
) -> list[Scene]:
    if work is None or plan is None:
        gaps["scenes"] = "a saved comparison holds no images and maps: fill a store with `roadworthy run`"
        return []
    shown = [name for name in dict.fromkeys(point.method for point in predictions) if name not in controls]
    try:
        return scenes(plan, work, Store(folder), shown or [method], method, next(iter(predictions.values())))
    except RoadworthyError as error:
        gaps["scenes"] = f"{error}; if the images lie elsewhere, say so with --plan PLAN"
        return []
