"""From stores to the small tables in reproduction/results: every point with its trial id, and what follows from them.

python -m reproduction.collect [--runs runs]
"""

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from roadworthy import statistics
from roadworthy.cli.run import opened
from roadworthy.core.results import Point, Predictions
from roadworthy.experiments import runner
from roadworthy.experiments.auditing import Measure, Settings, most_relevant_share
from roadworthy.experiments.auditor import QUESTIONS, AuditWork, audit_tables, pending_audit
from roadworthy.experiments.stores.run_directory import Store
from roadworthy.statistics.scores import blocks

HERE = Path(__file__).parent
RESULTS = HERE / "results"
METHODS = tuple(f"{base}{end}" for base in ("IG", "GB") for end in ("", "-SG", "-SQ", "-Var"))
EXPERIMENTS = {
    "cifar10": ("cifar10-cpu", "cifar10-cpu-retrain"),
    "cifar10-resnet18": ("cifar10-cpu-resnet18",),
    "food101": ("food101-cpu", "food101-cpu-retrain"),
}
"""experiment to its stores, which are about the same images and the same explained model"""
AUDITED = {"cifar10": tuple(QUESTIONS), "cifar10-resnet18": ("geometry",), "food101": ("geometry",)}
"""experiment to what its first store was asked"""
SHARES = (0.3, 0.5, 0.7)
"""at which it was asked: those at which models were retrained"""
DRAWS = 1000


@dataclass(frozen=True, eq=False)
class Held:
    """What the stores of an experiment hold."""

    predictions: dict[Point, Predictions]
    trials: dict[Point, str]
    """trial ids"""
    durations: dict[str, float]
    facts: dict[str, object]
    missing: int


def held(stores: list[Path]) -> Held:
    predictions: dict[Point, Predictions] = {}
    trials: dict[Point, str] = {}
    durations: dict[str, float] = {}
    facts: dict[str, object] = {}
    missing = 0
    for folder in stores:
        store, work = opened(folder)
        assert work is not None, f"{folder} has no plan"
        whole, _ = statistics.complete_curves(runner.predictions(work, store), work.trials)
        predictions |= whole
        trials |= {point: work.trials[point].id for point in whole}
        note = store.manifest()
        durations |= note["durations"]
        missing += len(work.missing_trials)
        facts[folder.name] = {
            "fingerprints": note["fingerprints"],
            "versions": note["versions"],
            "date": note["date"],
            "items": work.total,
            "missing": work.missing,
            "seconds": round(sum(note["durations"].values())),
        }
    return Held(predictions, trials, durations, facts, missing)


def trial_table(found: Held) -> pd.DataFrame:
    rows = []
    for point, prediction in found.predictions.items():
        low, high = statistics.share_interval(prediction.correct[None].astype(float))
        seconds = found.durations.get(found.trials[point], np.nan)
        rows.append((found.trials[point], *point, len(prediction), prediction.correct.mean(), low, high, seconds))
    columns = ["trial", *Point._fields, "images", "accuracy", "low", "high", "seconds"]
    return pd.DataFrame(rows, columns=columns)


def eight(found: Held) -> dict[Point, Predictions]:
    return {point: prediction for point, prediction in found.predictions.items() if point.method in METHODS}


def score_table(found: Held) -> pd.DataFrame:
    """Of all maps, the blurred copies and controls too; ranks among the eight are the docs' business."""
    table = statistics.ranking(found.predictions)
    return table[["method", "evaluator", "imputer", "srg", "srg_low", "srg_high", "morf", "lerf", "images"]]


def debiased_table(found: Held, geometry: pd.DataFrame) -> pd.DataFrame:
    """Acc' of the curves that were filled linearly, at the shares whose γ was measured."""
    curves = statistics.curves(found.predictions)
    table = statistics.debiased(curves[curves["imputer"] == "linear"], geometry, chance=0.1)
    ids = {point: trial for point, trial in found.trials.items() if point.imputer == "linear" and point.seed == 0}
    places = zip(table["method"], table["order"], table["evaluator"], table["fraction"], strict=True)
    table.insert(0, "trial", [ids[Point(m, o, "linear", j, f, 0)] for m, o, j, f in places])
    return table.drop(columns=["imputer", "clipped"])


def debiased_agreement(debiased: pd.DataFrame) -> Iterator[dict[str, object]]:
    """MoRF and LeRF of the retrained curves, before and after debiasing, at the shares where all eight are defined."""
    evaluated = debiased[(debiased["evaluator"] == "retrain") & debiased["method"].isin(METHODS)]
    for column, name in (("accuracy", "linear"), ("debiased", "linear + debiased")):
        for pairing in ("removed", "kept"):
            found = _spearman(evaluated, column, pairing)
            yield {"imputer": name, "pairing": pairing, "spearman": found[0], "fractions": found[1]}


def _spearman(points: pd.DataFrame, column: str, pairing: str) -> tuple[float, int]:
    square = points.pivot(index="method", columns=["order", "fraction"], values=column)
    found = []
    for fraction in sorted(set(points["fraction"])):
        other = fraction if pairing == "removed" else round(1 - fraction, 9)
        if ("lerf", other) not in square:
            continue
        pair = square[[("morf", fraction), ("lerf", other)]].dropna()
        if len(pair) > 2:
            found.append(statistics.spearman(-pair.iloc[:, 0].to_numpy(), pair.iloc[:, 1].to_numpy()))
    return (float(np.mean(found)) if found else np.nan), len(found)


def audit_of(folder: Path, questions: tuple[str, ...]) -> dict[str, pd.DataFrame]:
    """masks, recovery and geometry, each row with the id of the audit item that it comes from."""
    store, work = opened(folder)
    assert work is not None, f"{folder} has no plan"
    audit = pending_audit(work.plan, store, Settings(SHARES), work.prints, questions)
    tables = audit_tables(audit, store)
    return {name: _with_items(tables[name], audit) for name in questions}


def _with_items(table: pd.DataFrame, audit: AuditWork) -> pd.DataFrame:
    return table.assign(item=[audit.items[_measure(row)].id for row in table.to_dict("records")])


def _measure(row: dict[str, object]) -> Measure:
    if "bits" in row:
        share = most_relevant_share(str(row["order"]), float(str(row["fraction"])))
        return Measure("masks", str(row["method"]), share=share)
    if "gamma" in row:
        return Measure("geometry", str(row["method"]))
    masks, imputer = str(row["masks"]), str(row["imputer"])
    return (
        Measure("predictor", imputer=imputer) if masks in ("scatter", "blobs") else Measure("recovery", masks, imputer)
    )


def blur_table(found: Held) -> pd.DataFrame:
    """What blurring a map does to its curves, per method, fill and order: mean over shares, paired over images."""
    rows = []
    for block in blocks(
        {point: prediction for point, prediction in found.predictions.items() if point.evaluator == "no-retrain"}
    ):
        for score in ("morf", "lerf", "srg"):
            values = block.scores[score]
            for method in (name for name in METHODS if f"{name} blurred" in values):
                change = values[f"{method} blurred"] - values[method]
                low, high = statistics.mean_interval(change)
                rows.append((block.key.imputer, method, score, float(change.mean()), low, high))
    return pd.DataFrame(rows, columns=["imputer", "method", "score", "change", "low", "high"])


def carry_over(all_found: dict[str, Held]) -> pd.DataFrame:
    """Do two experiments rank the eight alike? Spearman of the combined score, images resampled in each."""
    names = list(all_found)
    drawn, scores = {}, {}
    for number, name in enumerate(names):
        for block in blocks(
            {point: one for point, one in eight(all_found[name]).items() if point.evaluator == "no-retrain"}
        ):
            values = np.stack([block.scores["srg"][method] for method in METHODS])
            scores[name, block.key.imputer] = values.mean(axis=(1, 2))
            drawn[name, block.key.imputer] = statistics.resampled_means(values, DRAWS, seed=number)
    rows = []
    for first, second in ((a, b) for i, a in enumerate(names) for b in names[i + 1 :]):
        for imputer in ("fixed", "linear"):
            if (first, imputer) not in scores or (second, imputer) not in scores:
                continue
            pairs = zip(drawn[first, imputer], drawn[second, imputer], strict=True)
            low, high = np.nanpercentile([statistics.spearman(a, b) for a, b in pairs], [2.5, 97.5])
            rows.append(
                (
                    first,
                    second,
                    imputer,
                    statistics.spearman(scores[first, imputer], scores[second, imputer]),
                    low,
                    high,
                )
            )
    return pd.DataFrame(rows, columns=["first", "second", "imputer", "spearman", "low", "high"])


def write(name: str, table: pd.DataFrame) -> None:
    RESULTS.mkdir(exist_ok=True)
    text = table.to_csv(index=False, float_format="%.6g", lineterminator="\n")
    (RESULTS / f"{name}.csv").write_text(text, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=Path, default=Path("runs"))
    runs = parser.parse_args().runs
    found = {}
    for name, stores in EXPERIMENTS.items():
        there = [runs / store for store in stores if (runs / store / "plan.toml").exists()]
        if there:
            found[name] = held(there)
    tables: dict[str, list[pd.DataFrame]] = {}

    def keep(name: str, experiment: str, table: pd.DataFrame) -> None:
        kept = table.copy()
        kept.insert(0, "experiment", experiment)
        tables.setdefault(name, []).append(kept)

    for experiment, one in found.items():
        keep("trials", experiment, trial_table(one))
        keep("scores", experiment, score_table(one))
        agreement = statistics.agreement_intervals(eight(one))
        keep("agreement", experiment, agreement[[c for c in agreement if not c.startswith(("kendall", "alpha"))]])
        if any(point.method.endswith(" blurred") for point in one.predictions):
            keep("blur", experiment, blur_table(one))
        if experiment in AUDITED and Store(runs / EXPERIMENTS[experiment][0]).ids("audit"):
            audits = audit_of(runs / EXPERIMENTS[experiment][0], AUDITED[experiment])
            for name, table in audits.items():
                keep(name, experiment, table)
            points = debiased_table(one, audits["geometry"])
            keep("debiased", experiment, points)
            keep("debiased-agreement", experiment, pd.DataFrame(list(debiased_agreement(points))))
    for name, parts in tables.items():
        write(name, pd.concat(parts, ignore_index=True))
    write("carry-over", carry_over(found))
    write("gain-search", pd.read_csv(runs / "gain-search.csv"))
    facts = {name: {"stores": one.facts, "missing": one.missing} for name, one in found.items()}
    (RESULTS / "facts.json").write_text(json.dumps(facts, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    for name, one in found.items():
        print(f"{name}: {len(one.predictions):,} points, {one.missing:,} missing")


if __name__ == "__main__":
    main()
