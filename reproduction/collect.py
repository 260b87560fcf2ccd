"""From run directories to the small tables in reproduction/results: every point with its id, and what follows from it.

python -m reproduction.collect [--runs runs]
"""

import argparse
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from reproduction.changes import change_table
from reproduction.ids import detection_measure, geometry_measure, mask_measure, point_id
from reproduction.kept import CORRECT, bits_of, write_bits
from reproduction.tables import AUDITED, EXPERIMENTS, HERE, METHODS, SHARES
from roadworthy import statistics
from roadworthy.audit.debiasing import debiased
from roadworthy.core.results import Point, Predictions
from roadworthy.experiments.audit_items import AuditDesign, AuditSettings, Measure, tables_of
from roadworthy.experiments.pending import survey
from roadworthy.experiments.run import open_run

RESULTS = HERE / "results"
POINT = ["method", "order", "imputer", "evaluator", "fraction", "seed"]
"""columns of a point; model and units have one value"""
DEBIASED = {"accuracy": "linear", "debiased": "linear + debiased"}
"""column of an accuracy to the name of its imputer in the paper's table"""


@dataclass(frozen=True, eq=False)
class Collected:
    """The complete curves in the run directories of an experiment."""

    predictions: dict[Point, Predictions]
    ids: dict[Point, str]
    seconds: dict[Point, float]
    runs: dict[str, dict[str, Any]]
    """facts about each run"""
    missing: int
    """points that are not complete"""


def collect(folders: list[Path]) -> Collected:
    predictions: dict[Point, Predictions] = {}
    ids: dict[Point, str] = {}
    seconds: dict[Point, float] = {}
    runs: dict[str, dict[str, Any]] = {}
    missing = 0
    for folder in folders:
        opened = open_run(folder)
        state, manifest = survey(opened.design, opened.store), opened.store.manifest()
        complete, durations = opened.results().predictions, manifest["durations"]
        predictions |= complete
        ids |= {point: point_id(state.points[point]) for point in complete}
        seconds |= {point: sum(durations.get(item.id, np.nan) for item in state.points[point]) for point in complete}
        missing += sum(not state.complete(point) for point in state.points)
        runs[folder.name] = {
            "fingerprints": manifest["fingerprints"],
            "versions": manifest["versions"],
            "date": manifest["date"],
            "items": len(state.goals),
            "missing": len(state.missing),
            "seconds": round(sum(durations.values())),
        }
    return Collected(predictions, ids, seconds, runs, missing)


def point_table(collected: Collected) -> pd.DataFrame:
    rows = []
    for point, predictions in collected.predictions.items():
        low, high = statistics.share_interval(predictions.correct[None].astype(float))
        values = (len(predictions), predictions.correct.mean(), low, high, collected.seconds[point])
        rows.append((collected.ids[point], *(getattr(point, name) for name in POINT), *values))
    return pd.DataFrame(rows, columns=["item", *POINT, "images", "accuracy", "low", "high", "seconds"])


def score_table(collected: Collected) -> pd.DataFrame:
    """Of all methods, blurred copies and controls included."""
    table = statistics.ranking(collected.predictions)
    return table[["method", "evaluator", "imputer", "srg", "srg_low", "srg_high", "morf", "lerf", "images"]]


def agreement_table(predictions: Mapping[Point, Predictions]) -> pd.DataFrame:
    """Of the paper's eight methods."""
    table = statistics.agreement_intervals(
        {point: one for point, one in predictions.items() if point.method in METHODS}
    )
    return table[[name for name in table if not name.startswith(("kendall", "alpha", "model_", "units_"))]]


def debiased_table(collected: Collected, geometry: pd.DataFrame) -> pd.DataFrame:
    """Acc' of the linearly imputed points whose γ was measured."""
    curves = statistics.curves(collected.predictions)
    table = debiased(curves[curves["imputer"] == "linear"], geometry, chance=0.1)
    points = zip(table["method"], table["order"], table["evaluator"], table["fraction"], strict=True)
    items = [collected.ids[Point(m, order, "linear", evaluator, f, 0)] for m, order, evaluator, f in points]
    table.insert(0, "item", items)
    return table.drop(columns=["imputer", "clipped"])


def debiased_agreement(table: pd.DataFrame) -> Iterator[dict[str, object]]:
    """MoRF against LeRF, retrained, before and after debiasing: the same methods, those with both debiased accuracies.

    methods: how many, summed over fractions.
    """
    points = table[(table["evaluator"] == "retrain") & table["method"].isin(METHODS)]
    matrices = {name: points.pivot(index="method", columns=["order", "fraction"], values=name) for name in DEBIASED}
    for column, imputer in DEBIASED.items():
        for pairing in ("removed", "kept"):
            spearman, fractions, methods = _mean_spearman(matrices[column], matrices["debiased"], pairing)
            counts = {"fractions": fractions, "methods": methods}
            yield {"imputer": imputer, "pairing": pairing, "spearman": spearman, **counts}


def _mean_spearman(values: pd.DataFrame, debiased: pd.DataFrame, pairing: str) -> tuple[float, int, int]:
    """The mean over fractions, how many fractions have a correlation, and of how many methods in all."""
    correlations, methods = [], 0
    for fraction in sorted({fraction for _, fraction in values.columns}):
        other = fraction if pairing == "removed" else round(1 - fraction, 9)
        columns = [("morf", fraction), ("lerf", other)]
        if columns[1] not in values:
            continue
        defined = debiased[columns].notna().all(axis=1)
        if defined.sum() > 2:
            morf, lerf = (values.loc[defined, column].to_numpy() for column in columns)
            correlations.append(statistics.spearman(-morf, lerf))
            methods += int(defined.sum())
    return (float(np.mean(correlations)) if correlations else np.nan), len(correlations), methods


def audit_tables(folder: Path, questions: tuple[str, ...]) -> dict[str, pd.DataFrame]:
    """The audit's tables, each row with the id of the item it comes from; {} if there was no audit."""
    opened = open_run(folder)
    state = survey(opened.design, opened.store)
    audit = AuditDesign(opened.design, state.blocks, state.copies, AuditSettings(SHARES, questions=questions))
    items = {measure: item for measure, item in audit.items().items() if item.id in state.stored}
    if not items:
        return {}
    tables = tables_of(items.values(), opened.store, None, 0.1)
    return {
        name: tables[name].assign(item=[items[_measure(name, row)].id for row in tables[name].to_dict("records")])
        for name in questions
    }


def _measure(table: str, row: dict[Any, Any]) -> Measure:
    if table == "masks":
        return mask_measure(row["method"], row["order"], row["fraction"])
    return detection_measure(row["imputer"], row["masks"]) if table == "detection" else geometry_measure(row["method"])


def blur_table(collected: Collected) -> pd.DataFrame:
    """How blurring the maps changes each score, per method and imputer; paired over images."""
    rows = []
    points = {point: one for point, one in collected.predictions.items() if point.evaluator == "no-retrain"}
    for block in statistics.blocks(points):
        for score in ("morf", "lerf", "srg"):
            values = block.scores[score]
            for method in (name for name in METHODS if f"{name} blurred" in values):
                change = values[f"{method} blurred"] - values[method]
                low, high = statistics.mean_interval(change)
                rows.append((block.key.imputer, method, score, float(change.mean()), low, high))
    return pd.DataFrame(rows, columns=["imputer", "method", "score", "change", "low", "high"])


def carry_over(scores: pd.DataFrame) -> pd.DataFrame:
    """Spearman correlation of the eight methods' srg in two experiments, from the table of scores."""
    table = scores[(scores["evaluator"] == "no-retrain") & scores["method"].isin(METHODS)]
    srg = table.pivot(index="method", columns=["experiment", "imputer"], values="srg")
    rows = [
        (first, second, imputer, statistics.spearman(srg[first, imputer].to_numpy(), srg[second, imputer].to_numpy()))
        for first, second in combinations(dict.fromkeys(table["experiment"]), 2)
        for imputer in ("fixed", "linear")
    ]
    return pd.DataFrame(rows, columns=["first", "second", "imputer", "spearman"])


def tables_from(runs: Path, experiments: dict[str, Collected]) -> dict[str, pd.DataFrame]:
    parts: dict[str, list[pd.DataFrame]] = {}

    def add(name: str, experiment: str, table: pd.DataFrame) -> None:
        part = table.copy()
        part.insert(0, "experiment", experiment)
        parts.setdefault(name, []).append(part)

    for experiment, collected in experiments.items():
        add("points", experiment, point_table(collected))
        add("scores", experiment, score_table(collected))
        add("agreement", experiment, agreement_table(collected.predictions))
        add("changes", experiment, change_table(collected.predictions, collected.ids))
        if any(point.method.endswith(" blurred") for point in collected.predictions):
            add("blur", experiment, blur_table(collected))
        audits = audit_tables(runs / EXPERIMENTS[experiment][0], AUDITED[experiment])
        for name, table in audits.items():
            add(name, experiment, table)
        if audits:
            points = debiased_table(collected, audits["geometry"])
            add("debiased", experiment, points)
            add("debiased-agreement", experiment, pd.DataFrame(list(debiased_agreement(points))))
    tables = {name: pd.concat(several, ignore_index=True) for name, several in parts.items()}
    return {**tables, "carry-over": carry_over(tables["scores"])}


def write(name: str, table: pd.DataFrame, folder: Path = RESULTS) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    text = table.to_csv(index=False, float_format="%.6g", lineterminator="\n")
    (folder / f"{name}.csv").write_text(text, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="holds a run directory per plan")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    experiments = {}
    for name, plans in EXPERIMENTS.items():
        folders = [options.runs / plan for plan in plans if (options.runs / plan / "plan.toml").exists()]
        if folders:
            experiments[name] = collect(folders)
    for name, table in tables_from(options.runs, experiments).items():
        write(name, table, options.out)
    bits = [bits_of(one.predictions, one.ids) for one in experiments.values()]
    write_bits({item: row for rows in bits for item, row in rows.items()}, options.out / CORRECT.name)
    search = options.runs / "gain-search.csv"
    if search.exists():
        write("gain-search", pd.read_csv(search), options.out)
    facts = {name: {"runs": one.runs, "missing": one.missing} for name, one in experiments.items()}
    text = json.dumps(facts, indent=1, sort_keys=True) + "\n"
    (options.out / "facts.json").write_text(text, encoding="utf-8")
    for name, collected in experiments.items():
        print(f"{name}: {len(collected.predictions):,} points, {collected.missing:,} missing")


if __name__ == "__main__":
    main()
