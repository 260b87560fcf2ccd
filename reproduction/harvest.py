"""From the run directories of long computations to small committed tables, also while they are incomplete.

python -m reproduction.harvest RUNS [--out results]

RUNS holds a run directory per plan in `STAGES`. Every point that is complete becomes a row of `tables-points.csv` with
its id, and a row of `tables-correct.npz`: which images were classified correctly, so that intervals over images can
be computed from the committed files. Rows of earlier harvests are kept.
"""

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reproduction.collect import POINT, RESULTS, write
from reproduction.ids import point_id
from reproduction.tables import METHODS, PLANS
from roadworthy import statistics
from roadworthy.core.results import Point, Predictions
from roadworthy.experiments.build import Fingerprints, design_of
from roadworthy.experiments.pending import survey
from roadworthy.experiments.plans import read_plan
from roadworthy.experiments.recorded import read_predictions
from roadworthy.experiments.stores.run_directory import RunDirectory

STAGES = (
    "cifar10-tables",
    "cifar10-tables-retrain",
    "cifar10-tables-warm",
    "food101-tables",
    "food101-tables-warm",
)
"""plans; those of one data set share the test images and the explained model"""
COLUMNS = ["plan", "item", *POINT, "images", "accuracy", "low", "high"]


def harvested(plan: str, store: RunDirectory) -> tuple[dict[Point, Predictions], dict[Point, str]]:
    """The complete points of a committed plan, whatever part of it was run last, and their ids."""
    design = design_of(read_plan(PLANS / f"{plan}.toml"), Fingerprints.from_json(store.manifest()["fingerprints"]))
    state = survey(design, store)
    complete = {point: items for point, items in state.points.items() if state.complete(point)}
    return read_predictions(complete, store), {point: point_id(items) for point, items in complete.items()}


def point_rows(plan: str, predictions: Mapping[Point, Predictions], ids: Mapping[Point, str]) -> pd.DataFrame:
    rows = []
    for point, one in predictions.items():
        low, high = statistics.share_interval(one.correct[None].astype(float))
        place = (getattr(point, name) for name in POINT)
        rows.append((plan, ids[point], *place, len(one), one.correct.mean(), low, high))
    return pd.DataFrame(rows, columns=COLUMNS)


def merged(old: pd.DataFrame, new: pd.DataFrame) -> pd.DataFrame:
    """New rows replace old ones of the same point; sorted, so that a table changes only where its rows do."""
    both = pd.concat([old, new]) if len(old) else new
    return both.drop_duplicates(["plan", *POINT], keep="last").sort_values(["plan", *POINT], ignore_index=True)


def correct_bits(predictions: Mapping[Point, Predictions], ids: Mapping[Point, str]) -> dict[str, NDArray[np.uint8]]:
    """By id, a bit per image in the order of the test images; of the paper's methods, and without removal."""
    kept = [point for point in predictions if point.method in METHODS or point.fraction == 0]
    return {ids[point]: np.packbits(predictions[point].correct) for point in kept}


def correct(item: str, images: int, folder: Path = RESULTS) -> NDArray[np.bool_]:
    """Which images the model of a committed point classified correctly."""
    with np.load(folder / "tables-correct.npz") as file:
        return np.unpackbits(file[item], count=images).astype(bool)


def committed_predictions(folder: Path = RESULTS) -> dict[str, dict[Point, Predictions]]:
    """By plan, the committed points of the paper's methods. Of a prediction only its correctness is known: the class 0
    stands for the label, 1 for any other."""
    table, bits, _ = _committed(folder)
    found: dict[str, dict[Point, Predictions]] = {}
    for row in table[table["item"].isin(bits)].to_dict("records"):
        images = int(row["images"])
        wrong = 1 - np.unpackbits(bits[str(row["item"])], count=images).astype(np.int64)
        unknown = np.full(images, np.nan, np.float32)
        predictions = Predictions(np.arange(images), np.zeros(images, np.int64), wrong, unknown)
        found.setdefault(str(row["plan"]), {})[Point(*(row[name] for name in POINT))] = predictions  # type: ignore[arg-type]
    return found


def agreements(folder: Path = RESULTS) -> pd.DataFrame:
    """Rank correlations between all settings of a data set, per seed of the training, with intervals over images."""
    by_plan, tables = committed_predictions(folder), []
    for data in dict.fromkeys(plan.partition("-")[0] for plan in by_plan):
        points = {point: one for plan, part in by_plan.items() if plan.startswith(data) for point, one in part.items()}
        points = {point: one for point, one in points.items() if point.method in METHODS}
        for seed in sorted({point.seed for point in points}):
            # Without retraining the seed only varies ties and noise: one seed serves all.
            one_seed = {
                point._replace(seed=0): one
                for point, one in points.items()
                if point.seed == seed or point.evaluator == "no-retrain"
            }
            tables.append(statistics.agreement_intervals(_complete(one_seed)).assign(experiment=data, seed=seed))
    table = pd.concat(tables, ignore_index=True)
    table = table[table["fractions"] > 0]  # pairs of settings without a common fraction have no agreement yet
    return table[[name for name in table if not name.startswith(("kendall", "alpha", "model_", "units_"))]]


def _complete(points: Mapping[Point, Predictions]) -> dict[Point, Predictions]:
    """Of settings that have all methods: a ranking of some of them is another ranking."""
    places: dict[tuple[str, str, str, float], set[str]] = {}
    for point in points:
        places.setdefault(point[1:5], set()).add(point.method)
    return {point: one for point, one in points.items() if places[point[1:5]] == set(METHODS)}


def harvest(runs: Path, out: Path) -> pd.DataFrame:
    table, bits, facts = _committed(out)
    for plan in STAGES:
        store = RunDirectory(runs / plan)
        if not store.manifest():
            continue
        predictions, ids = harvested(plan, store)
        table = merged(table, point_rows(plan, predictions, ids))
        bits |= correct_bits(predictions, ids)
        manifest = store.manifest()
        facts[plan] = {name: manifest[name] for name in ("fingerprints", "versions", "date")}
    write("tables-points", table, out)
    np.savez_compressed(out / "tables-correct.npz", **dict(sorted(bits.items())))
    (out / "tables-facts.json").write_text(json.dumps(facts, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return table


def _committed(out: Path) -> tuple[pd.DataFrame, dict[str, NDArray[np.uint8]], dict[str, Any]]:
    points, bits, facts = (out / f"tables-{name}" for name in ("points.csv", "correct.npz", "facts.json"))
    if not points.exists():
        return pd.DataFrame(columns=COLUMNS), {}, {}
    with np.load(bits) as file:
        arrays = {name: file[name] for name in file.files}
    table = pd.read_csv(points, dtype={"method": str, "order": str, "imputer": str})
    return table, arrays, json.loads(facts.read_text(encoding="utf-8"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, help="holds a run directory per plan")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    table = harvest(options.runs, options.out)
    write("tables-agreement", agreements(options.out), options.out)
    print(table.groupby(["plan", "evaluator", "seed"]).size().to_string())


if __name__ == "__main__":
    main()
