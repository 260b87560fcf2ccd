"""Gather what figures need from a comparison; of what is missing, why, and the cure."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from roadworthy import statistics
from roadworthy.core.errors import InputError, RoadworthyError
from roadworthy.experiments.audit_run import Audit
from roadworthy.experiments.comparison import Comparison
from roadworthy.experiments.examples import examples
from roadworthy.experiments.plot import debiasing_headline
from roadworthy.experiments.results import Runtime
from roadworthy.report.examples import Example
from roadworthy.report.figures.data import AUDIT, FigureData
from roadworthy.report.ranks import rank_panels


def gather(comparison: Comparison, folder: Path, method: str | None = None) -> FigureData:
    """`folder`: the run directory, whose audit is drawn too. `method`: for the figures of one method; the best."""
    gaps: dict[str, str] = {}
    results = comparison.results
    chosen = _chosen(comparison, method)
    audit = Audit.load(folder / "audit")
    tables = {name: _audit_table(audit, name, folder, gaps) for name in AUDIT}
    curves = comparison.curves()
    linear = next(iter(results.linear_imputers), "")
    fixed = next(iter(results.fixed_imputers), "")
    ranking = comparison.ranking()
    average_ranks = _average_ranks(comparison, gaps)
    agreement = _agreement(comparison, gaps)
    preferred = statistics.preferred_block(ranking, results.preferred)
    if not rank_panels(ranking, agreement):
        gaps["ranks"] = "no setting has two methods in both orders: add them to the plan and run it again"
    return FigureData(
        curves=curves,
        ranking=ranking,
        standings=comparison.standings(),
        average_ranks=average_ranks,
        agreement=agreement,
        runtimes=_runtimes(comparison, gaps),
        audit=tables,
        examples=_examples(comparison, chosen, gaps),
        gallery=comparison.gallery(),
        controls=comparison.controls,
        copies=tuple(results.copies),
        classes=len(np.unique(next(iter(comparison.predictions.values())).labels)),
        chance=comparison.chance,
        preferred=preferred,
        confidence=results.confidence,
        method=chosen,
        linear_imputer=linear,
        fixed_imputer=fixed,
        headline=debiasing_headline(comparison),
        gaps=gaps | _curve_gaps(curves, tables["masks"], chosen, linear, fixed),
    )


def _chosen(comparison: Comparison, method: str | None) -> str:
    methods = [name for name in _methods(comparison) if name not in comparison.controls]
    if method is not None and method not in methods:
        raise InputError(f"method {method!r} has no complete curve here; choose from: {', '.join(methods)}")
    if method is not None or not methods:
        return method or _methods(comparison)[0]
    return comparison.leaders()[0]


def _methods(comparison: Comparison) -> list[str]:
    return list(dict.fromkeys(point.method for point in comparison.predictions))


def _curve_gaps(curves: pd.DataFrame, masks: pd.DataFrame, method: str, linear: str, fixed: str) -> dict[str, str]:
    gaps = {}
    both = curves.groupby("evaluator")["imputer"].unique().map(lambda names: {linear, fixed} <= set(names))
    if not (linear and fixed and both.any()):
        gaps["headline"] = (
            'it needs a linear imputer and one that fills with a color: imputers = ["linear", "fixed"] in [evaluation]'
        )
    if curves[(curves["evaluator"] == "retrain") & (curves["imputer"] == linear)].empty:
        gaps["retrain"] = (
            'no curves of the evaluator "retrain" with a linear imputer: add them to [evaluation] and run again'
        )
    if curves.loc[curves["method"] == method, "evaluator"].nunique() < 2:
        gaps["evaluators"] = (
            f'{method} has one evaluator only: add "retrain" to evaluators in [evaluation] and run the plan again'
        )
    evaluated, audited = (set(table.loc[table["order"] == "morf", "method"]) for table in (curves, masks))
    if not evaluated & audited:
        gaps["masked scores"] = "no method has both MoRF curves and audited MoRF masks: evaluate and audit it in MoRF"
    return gaps


def _agreement(comparison: Comparison, gaps: dict[str, str]) -> pd.DataFrame:
    try:
        table = comparison.agreement()
    except InputError as error:
        gaps["agreement"] = f"{error}: add methods to the plan and run it again"
        return pd.DataFrame()
    if table.empty:
        gaps["agreement"] = "one setting only: add an order, an imputer or an evaluator to the plan and run it again"
    return table


def _average_ranks(comparison: Comparison, gaps: dict[str, str]) -> pd.DataFrame:
    table = statistics.average_ranks(comparison.predictions, tuple(comparison.results.copies))
    several = table.groupby(["evaluator", "imputer"])["method"].transform("count") > 1
    if not several.any():
        gaps["several methods"] = "one method without controls: add methods to the plan and run it again"
    return table[several]


def _runtimes(comparison: Comparison, gaps: dict[str, str]) -> pd.DataFrame:
    table = pd.DataFrame(comparison.results.runtimes, columns=Runtime._fields)
    if table.empty:
        gaps["runtimes"] = "no durations were recorded: make a run directory with `roadworthy run`"
    return table


def _audit_table(audit: Audit | None, name: str, folder: Path, gaps: dict[str, str]) -> pd.DataFrame:
    tables: Mapping[str, pd.DataFrame] = audit.tables if audit else {}
    columns = AUDIT[name]
    if name not in tables:
        gaps[name] = f"audit/{name}.csv does not exist: make it with `roadworthy audit {folder}`"
        return pd.DataFrame(columns=list(columns))
    if missing := [column for column in columns if column not in tables[name]]:
        gaps[name] = f"audit/{name}.csv lacks {', '.join(missing)}: make it again with `roadworthy audit {folder}`"
        return pd.DataFrame(columns=list(columns))
    return tables[name]


def _examples(comparison: Comparison, method: str, gaps: dict[str, str]) -> list[Example]:
    if comparison.source is None:
        gaps["examples"] = "a saved comparison holds no images and maps: make a run directory with `roadworthy run`"
        return []
    methods = [name for name in _methods(comparison) if name not in comparison.controls]
    try:
        return examples(comparison.source, [method, *(m for m in methods if m != method)], most_fractions=5, images=3)
    except RoadworthyError as error:
        gaps["examples"] = f"{error}; if the images lie elsewhere, give the plan's own file with --plan PLAN"
        return []
