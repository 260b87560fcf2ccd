"""Give the results that were recorded in run directories of format 1 their present names and ids. No number changes.

Format 1 recorded an item per point, format 2 an item per point and block of images; columns had other names. This
script takes tables, plans and fingerprints from the history of the repository, and

1. recomputes the old id of every row from the old plan and fingerprints, and checks that it is the committed one;
2. fingerprints the data block by block, after checking that they are those of the old fingerprints;
3. writes every table with the present names, and every row with the id that the present plan gives it. Numbers are
   copied as text.

    python -m reproduction.migrate --data data

Without --data, step 2 is skipped and the fingerprints in results/facts.json are used. The weights are not needed:
models are fingerprinted as before, so the recorded fingerprints are kept. The next `make reproduce` overwrites the
results, and this script can be deleted then.
"""

import argparse
import csv
import hashlib
import io
import json
import subprocess
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from reproduction.ids import audit_ids, detection_measure, geometry_measure, mask_measure, point_ids, with_root
from reproduction.tables import EXPERIMENTS, HERE, PLANS, SHARES
from roadworthy.core.results import Point
from roadworthy.core.types import Dataset
from roadworthy.experiments.audit_items import Measure
from roadworthy.experiments.build import Fingerprints, build_data, design_of
from roadworthy.experiments.items import default_block_size, fingerprint_blocks, sequential_rows
from roadworthy.experiments.plans import read_plan

OLD = "e780985"
"""the last commit with the old names"""
FILES = {
    "results/consistency": "results/agreement",
    "results/debiased-consistency": "results/debiased-agreement",
    "results/neighbours": "results/neighbors",
    "results/recovery": "results/detection",
    "results/trials": "results/points",
    "paper/consistency": "paper/agreement",
}
"""tables that are renamed; the others keep their names"""
KEPT = (
    *("results/blur", "results/carry-over", "results/cost", "results/debiased", "results/gain-search"),
    *("results/geometry", "results/masks", "results/scores", "results/toy"),
    *("paper/accuracy", "paper/gain", "paper/runtimes"),
)
COLUMNS = {
    "judge": "evaluator",
    "judge_a": "evaluator_a",
    "judge_b": "evaluator_b",
    "judging": "evaluating",
    "learning": "training",
    "neighbours": "neighbors",
    "trial": "item",
}
VALUES = {
    "fixed-model": "no-retrain",
    "retrained": "retrain",
    "mask-tuned": "fine-tuned",
    "centre": "center",
    "no better than a constant answer, which knows the share: counts as not told": (
        "no better than a constant prediction, which knows the fraction: counts as not detected"
    ),
}
Row = dict[str, str]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="holds cifar-10-batches-bin and food-101")
    data = parser.parse_args().data
    facts = json.loads(old_file("reproduction/results/facts.json"))
    prints = {run: new_fingerprints(run, old, data) for run, old in old_fingerprints(facts).items()}
    old_ids, new_ids = old_item_ids(old_fingerprints(facts)), new_item_ids(prints)
    for old_name in (*FILES, *KEPT):
        columns, rows = read_table(old_file(f"reproduction/{old_name}.csv"))
        kind = old_name.removeprefix("results/")
        column = {"trials": "trial", "debiased": "trial", "masks": "item", "recovery": "item", "geometry": "item"}
        if kind in column:
            rows = [{**row, column[kind]: renamed_id(kind, row, old_ids, new_ids, row[column[kind]])} for row in rows]
        write_table(HERE / f"{FILES.get(old_name, old_name)}.csv", columns, rows)
        print(f"{old_name}: {len(rows):,} rows{', every old id confirmed' if kind in column else ''}")
    for old_name in FILES:
        (HERE / f"{old_name}.csv").unlink(missing_ok=True)
    write_facts(facts, prints)


def old_file(path: str) -> str:
    command = ["git", "show", f"{OLD}:{path}"]
    return subprocess.run(command, cwd=HERE, check=True, capture_output=True, text=True, encoding="utf-8").stdout


def read_table(text: str) -> tuple[list[str], list[Row]]:
    reader = csv.DictReader(io.StringIO(text))
    return list(reader.fieldnames or ()), list(reader)


def write_table(path: Path, columns: list[str], rows: list[Row]) -> None:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow([COLUMNS.get(column, column) for column in columns])
    writer.writerows([VALUES.get(row[column], row[column]) for column in columns] for row in rows)
    path.write_text(buffer.getvalue(), encoding="utf-8")


def write_facts(facts: Mapping[str, Any], prints: Mapping[str, Fingerprints]) -> None:
    new = {
        experiment: {
            "missing": content["missing"],
            "runs": {
                name: {**run, "fingerprints": prints[name]._asdict(), "migrated": True}
                for name, run in content["stores"].items()
            },
        }
        for experiment, content in facts.items()
    }
    path = HERE / "results" / "facts.json"
    path.write_text(json.dumps(new, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def old_fingerprints(facts: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    return {name: run["fingerprints"] for content in facts.values() for name, run in content["stores"].items()}


# ── ids ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

Ids = Mapping[Any, str]
"""(run, point) or (run, measure) to id"""


def new_item_ids(prints: Mapping[str, Fingerprints]) -> dict[Any, str]:
    ids: dict[Any, str] = {}
    for run, fingerprints in prints.items():
        design = design_of(read_plan(PLANS / f"{run}.toml"), fingerprints)
        ids |= {(run, point): id for point, id in point_ids(design).items()}
        ids |= {(run, measure): id for measure, id in audit_ids(design, SHARES).items()}
    return ids


def renamed_id(kind: str, row: Row, old_ids: Ids, new_ids: Ids, committed: str) -> str:
    """The new id of a row, once its old id is recomputed."""
    runs = EXPERIMENTS[row["experiment"]]
    if kind in ("trials", "debiased"):
        evaluator = VALUES[row["judge"]]
        point = Point(
            VALUES.get(row["method"], row["method"]),
            row["order"],
            row.get("imputer", "linear"),
            evaluator,
            float(row["fraction"]),
            int(row.get("seed", 0)),
        )
        run = runs[-1] if evaluator == "retrain" else runs[0]
        part: Point | Measure = point
    else:
        run, part = runs[0], old_measure(kind, row)
    if old_ids[run, part] != committed:
        raise ValueError(f"{kind}: {committed} is not the id of {part} in {run}, which is {old_ids[run, part]}")
    return new_ids[run, part]


def old_measure(kind: str, row: Row) -> Measure:
    name = VALUES.get(row.get("method", row.get("masks", "")), row.get("method", row.get("masks", "")))
    if kind == "masks":
        return mask_measure(name, row["order"], float(row["fraction"]))
    return detection_measure(row["imputer"], name) if kind == "recovery" else geometry_measure(name)


# ── fingerprints ─────────────────────────────────────────────────────────────────────────────────────────────────────


def new_fingerprints(run: str, old: Mapping[str, str], root: Path | None) -> Fingerprints:
    if root is None:
        facts = json.loads((HERE / "results" / "facts.json").read_text(encoding="utf-8"))
        known = {name: one["fingerprints"] for content in facts.values() for name, one in content["runs"].items()}
        return Fingerprints.from_json(known[run])
    plan = with_root(read_plan(PLANS / f"{run}.toml"), root)
    data = checked(build_data(plan), old["data"])
    train = checked(build_data(plan, "train"), old["train"]) if plan.train is not None else None
    size = default_block_size(next(data.batches(1)).images.shape[1:], plan.batch_size, plan.map_batch_size)
    return Fingerprints(
        model=old["model"],
        block_size=size,
        images=len(data),
        data=tuple(fingerprint_blocks(data, sequential_rows(len(data), size))),
        train_images=0 if train is None else len(train),
        train=() if train is None else tuple(fingerprint_blocks(train, sequential_rows(len(train), size))),
    )


def checked(data: Dataset, fingerprint: str) -> Dataset:
    """The data, if they are those that were evaluated."""
    digest = hashlib.sha256()
    for batch in data.batches(256):
        for tensor in (batch.ids, batch.labels, batch.images):
            digest.update(tensor.contiguous().numpy().tobytes())
    if digest.hexdigest() != fingerprint:
        raise ValueError(f"these are not the images with the fingerprint {fingerprint}")
    return data


# ── ids as format 1 computed them: frozen ─────────────────────────────────────────────────────────────────────────

OLD_RECIPE = {
    "batch_size": 64, "lr": 1e-3, "optimiser": "adam", "momentum": 0.9, "weight_decay": 0.0, "schedule": "constant",
    "milestones": [], "gamma": 0.1, "select": "validation", "validation": 0.1, "patience": 0,
}  # fmt: skip
OLD_SMALL = {**OLD_RECIPE, "epochs": 12, "lr": 3e-3, "schedule": "cosine"}
OLD_GAIN = {
    "epochs": 100, "batch_size": 64, "lr": 5e-4, "schedule": "constant", "alpha": 100.0, "hint": 0.01, "width": 64,
    "blocks": 4, "largest": 0.9, "noise": 0.01, "validation": 0.05, "seed": 0,
}  # fmt: skip
OLD_READING = {
    "reader": "small", "side": 32, "folds": 5,
    "recipe": {
        **OLD_RECIPE, "epochs": 8, "lr": 2e-3, "weight_decay": 1e-4, "schedule": "cosine", "validation": 0.15,
    },
}  # fmt: skip
OLD_LOOKING = {
    "predictor": {
        "width": 32, "learned": 2**20, "tested": 2**18,
        "recipe": {
            **OLD_RECIPE, "epochs": 8, "batch_size": 16, "lr": 1e-2, "schedule": "cosine", "select": "last",
        },
    },
    "fractions": list(SHARES),
}  # fmt: skip
Json = dict[str, Any]


def old_item_ids(prints: Mapping[str, Mapping[str, str]]) -> dict[Any, str]:
    ids: dict[Any, str] = {}
    for run, fingerprints in prints.items():
        tables = tomllib.loads(old_file(f"plans/{run}.toml"))
        ids |= {(run, part): old_id(kind, spec) for part, kind, spec in old_items(tables, fingerprints)}
    return ids


def old_id(kind: str, spec: Json) -> str:
    text = json.dumps({"kind": kind, "spec": spec}, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def old_items(tables: Json, prints: Mapping[str, str]) -> Iterator[tuple[Point | Measure, str, Json]]:
    """Trials and audit items of a plan, under their present names."""
    evaluation = tables["evaluation"]
    methods = {name: {"name": spec} if isinstance(spec, str) else spec for name, spec in tables["methods"].items()}
    maps = {
        **methods,
        **{name: {"name": name} for name in evaluation.get("controls", ("random", "edges", "centre"))},
        **{f"{name} blurred": {"name": "blurred", "of": methods[name]} for name in evaluation.get("blurred", ())},
    }
    subject = {
        "dataset": {**_placeless(tables["data"]), "fingerprint": prints["data"]},
        "model": {**_placeless(tables["model"]), "fingerprint": prints["model"]},
    }
    train = {**_train(tables), "fingerprint": prints["train"]}
    imputers: dict[str, Json] = {name: {"name": name} for name in evaluation["imputers"]}
    if "gain" in imputers:
        imputers["gain"] |= {"train": train, "recipe": {**OLD_GAIN, **tables["gain"]}}
    (judge,) = evaluation.get("judges", ["fixed-model"])
    judge_spec: str | Json = judge
    if judge == "retrained":
        recipe = {key: value for key, value in tables["recipe"].items() if key not in ("name", "model")}
        network = tables["recipe"]["model"]
        judge_spec = {"name": judge, "train": train, "recipe": {**OLD_SMALL, **recipe}, "network": network}
    for method, spec in maps.items():
        new_name = VALUES.get(method, method)
        for order in ("morf", "lerf"):
            for imputer, imputer_spec in imputers.items():
                for fraction in (0.0, *evaluation["fractions"]):
                    untouched = judge == "retrained" and fraction == 0
                    trial = {
                        **subject,
                        "attribution": {} if untouched else {**spec, "map_seed": 0, "map_batch": 64},
                        "order": "" if untouched else order,
                        "imputer": {} if untouched else imputer_spec,
                        "judge": judge_spec,
                        "fraction": fraction,
                        "seed": 0,
                        "batch": 64,
                        "threads": 1,
                    }
                    yield Point(new_name, order, imputer, VALUES[judge], fraction, 0), "trial", trial
    seed = {"seed": 0, "threads": 1}
    orders, shares = ["morf", "lerf"], list(SHARES)
    for imputer, imputer_spec in imputers.items():
        looking = {"dataset": subject["dataset"], "imputer": imputer_spec, **OLD_LOOKING}
        yield Measure("detector", imputer=imputer), "audit", {"measure": "predictor", **looking, **seed}
    for method, spec in maps.items():
        name, own = VALUES.get(method, method), {**subject, "seed": 0, "batch": 64, "threads": 1, "attribution": spec}
        for share in SHARES:
            reading = {"measure": "masks", "map": own, "share": share, **OLD_READING, **seed}
            yield Measure("masks", name, fraction=share), "audit", reading
        shape = {"measure": "geometry", "map": own, "orders": orders, "fractions": shares, **seed}
        yield Measure("geometry", name), "audit", shape
        for imputer, imputer_spec in imputers.items():
            shown = {"measure": "recovery", "map": own, "orders": orders, "imputer": imputer_spec, **OLD_LOOKING}
            yield Measure("detection", name, imputer), "audit", {**shown, **seed}


def _train(tables: Json) -> Json:
    base = {key: value for key, value in tables["data"].items() if key not in ("images", "sample")}
    return _placeless({**base, "split": "train", **tables.get("train", {})})


def _placeless(spec: Json) -> Json:
    return {key: value for key, value in spec.items() if key not in ("root", "weights", "path")}


if __name__ == "__main__":
    main()
