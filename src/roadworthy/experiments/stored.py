"""What a page tells of a store: predictions, what is missing, how it was made, and pictures where the data are at hand."""

from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from roadworthy import statistics
from roadworthy.core.errors import DataError, RoadworthyError
from roadworthy.core.results import Predictions
from roadworthy.core.types import UNLABELED, Batch, Dataset
from roadworthy.datasets.subsets import picked
from roadworthy.experiments import runner
from roadworthy.experiments.auditor import read_table
from roadworthy.experiments.build import build_data
from roadworthy.experiments.comparison import Comparison
from roadworthy.experiments.illustrations import IMAGES
from roadworthy.experiments.items import fingerprint_data
from roadworthy.experiments.plans.plan import Spec
from roadworthy.experiments.stores.run_directory import Store
from roadworthy.experiments.study import Examples
from roadworthy.report.findings import AUDITS, Findings
from roadworthy.report.tables import day


def saved_findings(store: Store) -> Findings:
    """Of a saved comparison: it holds predictions and a note, no images."""
    note = store.manifest()
    found = saved_comparison(store).findings()
    return replace(found, facts={**found.facts, **_origin(note)}, no_pictures="a saved comparison holds no images")


def saved_comparison(store: Store) -> Comparison:
    note = store.manifest()
    return Comparison(
        store.predictions(), tuple(note.get("controls", ())), {}, None, tuple(note.get("classes", ())),
        about=note.get("about", {}),
    )  # fmt: skip


def stored_findings(store: Store, work: runner.Work) -> Findings:
    """Of a store filled by a plan. Curves that are not whole wait: they are named, not shown."""
    comparison, gaps = stored_comparison(store, work)
    about = dict(comparison.about)
    if comparison.predictions:
        found = _illustrated(comparison, store, work)
    else:
        there = len(work.trials) - len(work.missing_trials)
        text = f"Nothing can be ranked yet. Of {len(work.trials):,} points {there:,} are there, and no curve is whole."
        found = Findings(conclusion=text, no_pictures="nothing is ranked yet", facts=about)
    return replace(
        found,
        missing=gaps,
        facts={**found.facts, **_origin(store.manifest())},
        runtimes=_runtimes(work, store),
        audits=_audits(store),
        plan=(store.root / "plan.toml").read_text(encoding="utf-8"),
    )


def stored_comparison(store: Store, work: runner.Work) -> tuple[Comparison, pd.DataFrame]:
    """The curves that are whole, and a table of the others."""
    predictions, gaps = statistics.whole_curves(runner.predictions(work, store), work.trials)
    about = {"Model": _spec_text(work.plan.model), "Data": _spec_text(work.plan.data)}
    controls = (*work.plan.controls, *(f"{name} blurred" for name in work.plan.blurred))
    marked = tuple(name for name in controls if name in {point.method for point in predictions})
    return Comparison(predictions, marked, {}, None, about=about), gaps


def _illustrated(comparison: Comparison, store: Store, work: runner.Work) -> Findings:
    """With pictures, if the images and the maps of the leading methods can be had; if not, the page says why."""
    try:
        data = build_data(work.plan)
        examples = _examples(data, next(iter(comparison.predictions.values())), comparison.leaders(), store, work)
        imputers = runner.imputers_at_hand(work, store, data)
    except RoadworthyError as error:
        return replace(comparison.findings(), no_pictures=str(error))
    evaluated = {point.imputer for point in comparison.predictions}
    shown = {name: imputer for name, imputer in imputers.items() if name in evaluated}
    return replace(comparison, examples=examples, imputers=shown, classes=data.classes).findings()


def _examples(data: Dataset, evaluated: Predictions, methods: list[str], store: Store, work: runner.Work) -> Examples:
    """A few images as they were evaluated, from all over the data, which may be sorted by class."""
    if fingerprint_data(data) != work.prints.data:
        raise DataError("the data are not those that were evaluated: their fingerprint differs")
    rows = np.unique(np.linspace(0, len(data) - 1, IMAGES).round().astype(int))
    batch = next(picked(data, rows.tolist()).batches(len(rows)))
    guessed = batch.labels == UNLABELED
    maps = {
        name: torch.from_numpy(store.read_maps(work.maps[name].id)[rows])
        for name in methods
        if name not in work.missing_maps
    }
    return Examples(Batch(batch.ids, batch.images, torch.from_numpy(evaluated.labels[rows])), maps, guessed)


def _spec_text(spec: Spec) -> str:
    """A part and its options, for people; where files lie is nobody else's business.

    >>> _spec_text({"name": "cifar10", "root": "/home/me/data", "split": "test"})
    'cifar10 (split: test)'
    """
    name = spec.get("factory", spec["name"])
    shown = {key: value for key, value in spec.items() if key not in ("name", "factory", "root", "path")}
    options = [f"{key}: {Path(value).name if key == 'weights' else value}" for key, value in shown.items()]
    return f"{name} ({', '.join(options)})" if options else str(name)


def _origin(note: dict[str, Any]) -> dict[str, str]:
    versions = dict(note.get("versions", {}))
    facts = {"Roadworthy": versions.pop("roadworthy", "")}
    facts["Date"] = day(datetime.fromisoformat(note["date"])) if "date" in note else ""
    facts["Versions"] = ", ".join(f"{name} {number}" for name, number in versions.items())
    facts["Machine"] = ", ".join(f"{key} {value}" for key, value in note.get("machine", {}).items() if value)
    for name, text in note.get("fingerprints", {}).items():
        facts[f"Fingerprint of {name}"] = text
    if seconds := sum(note.get("durations", {}).values()):
        facts["Computed in"] = f"{seconds:,.0f} s, all items together"
    return {name: text for name, text in facts.items() if text}


def _audits(store: Store) -> dict[str, pd.DataFrame]:
    """What `roadworthy audit` wrote beside the results."""
    tables = {name: read_table(store.root, name) for name in AUDITS}
    return {name: table for name, table in tables.items() if table is not None}


def _runtimes(work: runner.Work, store: Store) -> pd.DataFrame:
    return pd.DataFrame(
        [
            (one.evaluator, one.imputer, f"{one.seconds:,.2f}", f"{one.relative:.1%}")
            for one in runner.runtimes(work, store)
        ],
        columns=["evaluated by", "filled by", "seconds per curve", "relative"],
    )
