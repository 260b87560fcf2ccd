"""What a store holds of an experiment, for everything that comes after: tables, audit, report, figures."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from roadworthy import statistics
from roadworthy.core.errors import StoreError
from roadworthy.core.results import Copy, Point, Predictions
from roadworthy.experiments.design import Design
from roadworthy.experiments.items import Item
from roadworthy.experiments.pending import Survey
from roadworthy.experiments.recorded import as_predictions, prediction_arrays, read_predictions
from roadworthy.experiments.self_test.record import SelfTestRecord, collect_self_test, read_self_test, save_self_test
from roadworthy.experiments.stores import Store
from roadworthy.experiments.stores.run_directory import RunDirectory, checksum


class Runtime(NamedTuple):
    """The paper's runtime table: what a strategy costs per curve, all its fractions together."""

    evaluator: str
    imputer: str
    seconds: float
    relative: float
    """to retraining with a fixed imputer, or else to the most expensive strategy here"""


@dataclass(frozen=True, eq=False)
class Results:
    predictions: Mapping[Point, Predictions]
    """of complete curves"""
    controls: tuple[str, ...] = ()
    copies: Mapping[str, Copy] = field(default_factory=dict)
    """controls made from another method's maps"""
    preferred: tuple[str, str] | None = None
    """the evaluator and imputer to look at first"""
    linear_imputers: tuple[str, ...] = ()
    """names of the imputers that are Noisy Linear"""
    fixed_imputers: tuple[str, ...] = ()
    """names of the imputers that fill with the data set's mean"""
    classes: tuple[str, ...] = ()
    unlabeled: bool = False
    """no image has a label; the model's predictions stand in"""
    ties: Mapping[str, statistics.Ties] = field(default_factory=dict)
    stopping: statistics.StoppingRule | None = None
    available: int = 0
    """images of the data set, where early stopping did not take all"""
    about: Mapping[str, str] = field(default_factory=dict)
    """the model and the data, for people"""
    missing: pd.DataFrame | None = None
    """curves that are not complete"""
    runtimes: Sequence[Runtime] = ()
    manifest: Mapping[str, Any] = field(default_factory=dict)
    confidence: float = statistics.CONFIDENCE
    """of all intervals"""
    margin: float = statistics.MARGIN
    """scores that surely differ by less are tied"""
    target: str = "label"
    """which class was explained: "label" or "prediction" """
    noted: tuple[str, ...] = ()
    """warnings of the rehearsal"""
    self_test: SelfTestRecord | None = None
    """damaged copies: kept apart from `predictions`, so that they are in no table"""


def collect(design: Design, state: Survey, store: Store, facts: Mapping[str, Any]) -> Results:
    """Complete curves only; the others are listed."""
    known = {point: items for point, items in state.points.items() if state.complete(point)}
    complete, gaps = statistics.complete_curves(read_predictions(known, store), state.points)
    methods = {point.method for point in complete}
    controls = [*design.blind_controls, *state.copies]
    return Results(
        complete,
        tuple(name for name in controls if name in methods),
        {name: copy for name, copy in state.copies.items() if name in methods},
        design.preferred,
        design.imputers_named("linear"),
        design.imputers_named("fixed"),
        tuple(facts.get("classes", ())),
        bool(facts.get("unlabeled", False)),
        _ties(design, state, store, methods),
        design.stopping_rule,
        sum(len(block.rows) for block in design.blocks),
        dict(facts.get("about", {})),
        gaps,
        runtimes(design, state, store),
        store.manifest(),
        design.confidence,
        design.margin,
        design.target,
        tuple(facts.get("noted", ())),
        collect_self_test(state, store),
    )


def _ties(design: Design, state: Survey, store: Store, methods: set[str]) -> dict[str, statistics.Ties]:
    found = {}
    for method in design.base_methods:
        items = [design.map_item(method, block) for block in state.blocks]
        if method in methods and all(item.id in state.stored for item in items):
            ties = np.concatenate([store.read(item)["ties"] for item in items]).mean(axis=0)
            found[method] = statistics.Ties(*(float(value) for value in ties))
    return found


def maps_of(design: Design, state: Survey, store: Store, method: str, rows: Sequence[int]) -> NDArray[Any]:
    """The stored maps of some rows."""
    copy = state.copies.get(method)
    if copy is not None and copy.how == "inverted":
        return -maps_of(design, state, store, copy.of, rows)
    found: dict[int, NDArray[Any]] = {}
    for block in state.blocks:
        wanted = [row for row in rows if row in set(block.rows)]
        if wanted:
            item = design.map_item(method, block, copy)
            if item.id not in state.stored:
                raise StoreError(f"the maps of {method!r} are not stored")
            maps, places = store.read(item)["maps"], {row: place for place, row in enumerate(block.rows)}
            found |= {row: maps[places[row]] for row in wanted}
    return np.stack([found[row] for row in rows])


def runtimes(design: Design, state: Survey, store: Store) -> list[Runtime]:
    durations = store.manifest().get("durations", {})
    fixed = design.imputers_named("fixed")
    curves: dict[tuple[str, str], dict[Point, float]] = {}
    for point, items in state.points.items():
        times = [durations[item.id] for item in items if item.id in durations]
        if len(times) == len(items) and point.method not in state.copies:
            curve = curves.setdefault((point.evaluator, point.imputer), {})
            start = point._replace(fraction=0.0)
            curve[start] = curve.get(start, 0.0) + sum(times)
    means = {strategy: sum(curve.values()) / len(curve) for strategy, curve in curves.items()}
    largest = max(means.values(), default=1.0)
    base = next((means["retrain", name] for name in fixed if ("retrain", name) in means), largest)
    return [Runtime(*strategy, seconds, seconds / (base or 1.0)) for strategy, seconds in means.items()]


# ── saved comparisons ────────────────────────────────────────────────────────────────────────────────────────────────


def save(results: Results, folder: Path, origin: Mapping[str, Any]) -> None:
    """Write predictions and facts into a new run directory: an item per point, no images and no maps."""
    store = RunDirectory(folder)
    with store.locked():
        if store.manifest() or store.ids():
            raise StoreError(f"{folder} already holds results: save into a new folder")
        order = []
        for point, predictions in results.predictions.items():
            baseline = results.predictions[point._replace(fraction=0.0)]
            spec = {**point._asdict(), "subject": checksum(prediction_arrays(baseline))}
            item = Item("predictions", spec, point._asdict())
            store.write(item, prediction_arrays(predictions))
            order.append(item.id)
        facts = {**_facts(results), "items": order}
        if results.self_test:
            facts["self_test"] = save_self_test(results.self_test, store)
        store.write_manifest({**origin, "kind": "comparison", "results": facts})


def _facts(results: Results) -> dict[str, Any]:
    return {
        "controls": results.controls,
        "copies": {name: copy._asdict() for name, copy in results.copies.items()},
        "preferred": results.preferred,
        "linear_imputers": results.linear_imputers,
        "fixed_imputers": results.fixed_imputers,
        "classes": results.classes,
        "unlabeled": results.unlabeled,
        "ties": {name: ties._asdict() for name, ties in results.ties.items()},
        "stopping": results.stopping._asdict() if results.stopping else None,
        "available": results.available,
        "about": dict(results.about),
        "noted": results.noted,
        "confidence": results.confidence,
        "margin": results.margin,
        "target": results.target,
    }


def read_saved(store: RunDirectory) -> Results:
    manifest = store.manifest()
    try:
        return _saved(store, manifest, manifest.get("results", {}))
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise StoreError(f"{store.root / 'manifest.json'} does not describe a saved comparison ({error!r})") from error


def _saved(store: RunDirectory, manifest: Mapping[str, Any], facts: Mapping[str, Any]) -> Results:
    predictions = {}
    for id in facts.get("items", ()):
        header, arrays = store.read_file(store.stored_path("predictions", id))
        predictions[Point(**header["label"])] = as_predictions(arrays)
    stopping = statistics.StoppingRule.read(facts["stopping"]) if facts.get("stopping") else None
    return Results(
        predictions,
        tuple(facts.get("controls", ())),
        {name: Copy(**copy) for name, copy in facts.get("copies", {}).items()},
        tuple(facts["preferred"]) if facts.get("preferred") else None,
        tuple(facts.get("linear_imputers", ())),
        tuple(facts.get("fixed_imputers", ())),
        tuple(facts.get("classes", ())),
        bool(facts.get("unlabeled", False)),
        {name: statistics.Ties(**ties) for name, ties in facts.get("ties", {}).items()},
        stopping,
        int(facts.get("available", 0)),
        facts.get("about", {}),
        manifest=manifest,
        # Earlier versions kept these only as part of the stopping rule.
        confidence=facts.get("confidence", stopping.confidence if stopping else statistics.CONFIDENCE),
        margin=facts.get("margin", stopping.margin if stopping else statistics.MARGIN),
        target=facts.get("target", "label"),
        noted=tuple(facts.get("noted", ())),
        self_test=read_self_test(store, facts.get("self_test")),
    )
