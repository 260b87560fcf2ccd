"""From the run directories to small committed tables, also while they are incomplete.

python -m reproduction.harvest [RUNS] [--out results]

RUNS holds a run directory per plan in `STAGES`. Every point that is complete becomes a row of `points.csv` with its id,
and, unless it is a control, a row of `correct/PLAN.npz`: which images were classified correctly. Every measure of the
audit becomes rows of `geometry.csv`, `detection.csv` and `masks.csv`, with the id of its item. Everything else on the
page follows from these files (`reproduction.derive`). Rows of earlier harvests are kept if the plan still gives them
their ids: those of another model or other settings go.
"""

import argparse
import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from reproduction.ids import detection_measure, geometry_measure, mask_measure, point_id, point_ids
from reproduction.kept import bits_of, bits_path, read_bits, write_bits
from reproduction.stages import AUDITED, QUESTIONS, SHARES, STAGES
from reproduction.tables import PLANS, POINT, RESULTS, Results
from roadworthy import statistics
from roadworthy.core.results import Point, Predictions
from roadworthy.experiments.audit_items import AuditDesign, AuditSettings, Measure, tables_of
from roadworthy.experiments.design import Design
from roadworthy.experiments.fingerprints import Fingerprints
from roadworthy.experiments.pending import Survey, survey
from roadworthy.experiments.plan_design import design_of
from roadworthy.experiments.plans import read_plan
from roadworthy.experiments.recorded import read_predictions
from roadworthy.experiments.stores.run_directory import RunDirectory

COLUMNS = ["plan", "item", *POINT, "images", "accuracy", "low", "high"]
OF_TABLE = {
    "masks": lambda row: mask_measure(row["method"], row["order"], row["fraction"]),
    "detection": lambda row: detection_measure(row["imputer"], row["masks"]),
    "geometry": lambda row: geometry_measure(row["method"]),
}
"""the measure behind a row of a table of the audit"""


def surveyed(plan: str, store: RunDirectory, plans: Path = PLANS) -> tuple[Design, Survey]:
    """The committed plan on this store, whatever part of it was run last."""
    prints = Fingerprints.from_json(store.manifest()["fingerprints"])
    design = design_of(read_plan(plans / f"{plan}.toml"), prints)
    return design, survey(design, store)


def complete_points(state: Survey, store: RunDirectory) -> tuple[dict[Point, Predictions], dict[Point, str]]:
    """The complete points and their ids."""
    complete = {point: items for point, items in state.points.items() if state.complete(point)}
    return read_predictions(complete, store), {point: point_id(items) for point, items in complete.items()}


def point_rows(plan: str, predictions: Mapping[Point, Predictions], ids: Mapping[Point, str]) -> pd.DataFrame:
    rows = []
    for point, one in predictions.items():
        low, high = statistics.share_interval(one.correct[None].astype(float))
        place = (getattr(point, name) for name in POINT)
        rows.append((plan, ids[point], *place, len(one), one.correct.mean(), low, high))
    return pd.DataFrame(rows, columns=COLUMNS)


def merged(old: pd.DataFrame, new: pd.DataFrame, key: list[str]) -> pd.DataFrame:
    """New rows replace old ones of the same key; sorted, so that a table changes only where its rows do."""
    both = pd.concat([old, new]) if len(old) else new
    return both.drop_duplicates(key, keep="last").sort_values(key, ignore_index=True)


def facts_of(
    state: Survey,
    ids: Mapping[Point, str],
    kept: Collection[str],
    fractions: Sequence[float],
    manifest: Mapping[str, Any],
) -> dict[str, Any]:
    """`points`: by seed, how many are harvested, and how many there are; that of whole images counts once."""
    seeds: dict[str, list[int]] = {}
    for seed in sorted({point.seed for point in ids}):
        of_seed = {id for point, id in ids.items() if point.seed == seed}
        seeds[str(seed)] = [len(of_seed & set(kept)), len(of_seed)]
    facts = {name: manifest[name] for name in ("fingerprints", "versions", "date")}
    times = manifest.get("cpu_seconds", {})
    known = [times[id] for id in state.goals if id in times]
    cpu = {"cpu_seconds": round(sum(known))} if len(known) == len(state.goals) else {}
    return {**facts, **cpu, "points": seeds, "fractions": list(fractions)}


def audit_rows(design: Design, state: Survey, store: RunDirectory) -> dict[str, pd.DataFrame]:
    """The audit's tables, each row with the id of the item it comes from, as far as they were measured."""
    audit = AuditDesign(design, state.blocks, state.copies, AuditSettings(SHARES, questions=QUESTIONS))
    items = {measure: item for measure, item in audit.items().items() if item.id in state.stored}
    tables = tables_of(items.values(), store, None, 0.1) if items else {}
    found = {}
    for name in QUESTIONS:
        if len(table := tables.get(name, pd.DataFrame())):
            found[name] = table.assign(item=[_id(items, name, row) for row in table.to_dict("records")])
    return found


def _id(items: Mapping[Measure, Any], table: str, row: Mapping[str, Any]) -> str:
    id: str = items[OF_TABLE[table](row)].id
    return id


def _same_methods(plan: Path, kept: Path) -> bool:
    return kept.exists() and read_plan(plan).methods == read_plan(kept).methods


def _of_plan(table: pd.DataFrame, plan: str, ids: Mapping[Point, str]) -> pd.DataFrame:
    """The table without rows of this plan that it does not give these ids."""
    return table[(table["plan"] != plan) | table["item"].isin(set(ids.values()))] if len(table) else table


def harvest(runs: Path, results: Results, plans: Path = PLANS) -> pd.DataFrame:
    table, facts = results.table("points"), results.facts()
    for plan in (stage.plan for stage in STAGES):
        store = RunDirectory(runs / plan)
        manifest = store.manifest()
        if not manifest.get("fingerprints") or not _same_methods(plans / f"{plan}.toml", store.plan_path):
            continue  # not there, or only merged from another plan: fingerprints are that plan's
        design, state = surveyed(plan, store, plans)
        predictions, ids = complete_points(state, store)
        if not predictions:
            continue
        planned = point_ids(design)
        table = merged(_of_plan(table, plan, planned), point_rows(plan, predictions, ids), ["plan", *POINT])
        of_methods = {point: one for point, one in predictions.items() if point.method in design.methods}
        kept = table.loc[table["plan"] == plan, "item"]
        bits = read_bits(bits_path(results, plan)) | bits_of(of_methods, ids)
        write_bits({id: one for id, one in bits.items() if id in set(kept)}, bits_path(results, plan))
        facts[plan] = {**facts.get(plan, {}), **facts_of(state, planned, set(kept), design.fractions, manifest)}
        if plan == AUDITED:
            for name, rows in audit_rows(design, state, store).items():
                results.write(name, rows)
    results.write("points", table)
    (results.folder / "facts.json").write_text(json.dumps(facts, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="?", default=Path("runs"), help="holds a run directory per plan")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--plans", type=Path, default=PLANS)
    options = parser.parse_args()
    table = harvest(options.runs, Results(options.out), options.plans)
    print(table.groupby(["plan", "evaluator", "seed"]).size().to_string())


if __name__ == "__main__":
    main()
