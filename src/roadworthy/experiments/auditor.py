"""Which part of a plan's audit is missing? Do it, once, and make its tables, which the store keeps as CSV too."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from roadworthy import statistics
from roadworthy.audit.debiasing import linear_leads
from roadworthy.audit.mask_information import check_classes
from roadworthy.audit.tables import Hole
from roadworthy.audit.tables import audit_tables as audit_tables_of
from roadworthy.core.errors import DataError
from roadworthy.core.files import write_atomically
from roadworthy.core.results import Recovered
from roadworthy.experiments.auditing import (
    AuditTask,
    Measure,
    Settings,
    audit_items,
    geometry_from,
    known_labels,
    method_holes,
    pattern_holes,
    recovered_from,
)
from roadworthy.experiments.build import built, fingerprints
from roadworthy.experiments.items import Fingerprints, Item
from roadworthy.experiments.plans.plan import Plan
from roadworthy.experiments.runner import Executor, Notes, OnEvent, Work, map_tasks, painter, pending, predictions
from roadworthy.experiments.stores.run_directory import Store


@dataclass(frozen=True, eq=False)
class AuditWork:
    """All items of a plan's audit, which of them are missing, and the maps that they need."""

    plan: Plan
    settings: Settings
    items: Mapping[Measure, Item]
    missing: tuple[Measure, ...]
    work: Work

    @property
    def missing_maps(self) -> tuple[str, ...]:
        needed = {measure.method for measure in self.missing}
        return tuple(name for name in self.work.missing_maps if name in needed)


QUESTIONS: Mapping[str, tuple[str, ...]] = {
    "masks": ("masks",),
    "recovery": ("predictor", "recovery"),
    "geometry": ("geometry",),
}
"""What can be asked, and the measures that answer it."""


def pending_audit(
    plan: Plan,
    store: Store,
    settings: Settings,
    prints: Fingerprints | None = None,
    questions: Sequence[str] = tuple(QUESTIONS),
) -> AuditWork:
    """What an audit would do; nothing is computed."""
    prints = prints or fingerprints(plan)
    asked, have = {name for question in questions for name in QUESTIONS[question]}, store.ids("audit")
    items = {measure: item for measure, item in audit_items(plan, prints, settings).items() if measure.name in asked}
    missing = tuple(measure for measure, item in items.items() if item.id not in have)
    return AuditWork(plan, settings, items, missing, pending(plan, store, prints))


def audit(
    plan: Plan,
    store: Store,
    settings: Settings,
    executor: Executor,
    on_event: OnEvent,
    on_start: Callable[[AuditWork, list[str]], None],
    questions: Sequence[str] = tuple(QUESTIONS),
) -> AuditWork:
    """Do what is missing, maps first; returns what is missing still (that which failed)."""
    with store.locked():
        complaints = store.clean()
        work = pending_audit(plan, store, settings, questions=questions)
        if work.missing:
            context = built(plan)
            check_classes(known_labels(context)[1].numpy(), len(context.data.classes))
        on_start(work, complaints)
        notes = Notes(store, work.work)
        try:
            executor.run(map_tasks(work.work, work.missing_maps), notes.recorder(on_event))
            for names in (("predictor", "masks", "geometry"), ("recovery",)):
                work = pending_audit(plan, store, settings, work.work.prints, questions)
                executor.run(_tasks(work, store, names), notes.recorder(on_event))
        finally:
            notes.save()
        return pending_audit(plan, store, settings, work.work.prints, questions)


def _tasks(work: AuditWork, store: Store, names: tuple[str, ...]) -> Iterator[AuditTask]:
    """The maps, and the predictors, are read when their turn comes; what lacks them waits for another run."""
    for measure in work.missing:
        trained = Measure("predictor", imputer=measure.imputer)
        if measure.name not in names or measure.method in work.missing_maps:
            continue
        if measure.name == "recovery" and trained in work.missing:
            continue
        if measure.imputer in work.work.missing_imputers:
            continue
        yield AuditTask(
            work.plan,
            work.settings,
            work.items[measure],
            measure,
            maps=store.read_maps(work.work.maps[measure.method].id) if measure.method else None,
            painter=painter(work.work, store, measure.imputer),
            weights=store.read("audit", work.items[trained].id)[1] if measure.name == "recovery" else None,
        )


def audit_tables(work: AuditWork, store: Store) -> dict[str, pd.DataFrame]:
    """masks, recovery, geometry, leads and conclusions, of what is there; gaps are gaps."""
    plan, fractions = work.plan, work.settings.fractions
    done = {measure: item for measure, item in work.items.items() if measure not in work.missing}
    read = {
        (measure.method, measure.share): store.read_predictions(item.id, "audit")
        for measure, item in done.items()
        if measure.name == "masks"
    }
    recovered: dict[Hole, Recovered] = {}
    for measure, item in done.items():
        holes = {
            "predictor": pattern_holes(measure.imputer, fractions),
            "recovery": method_holes(measure.imputer, measure.method, plan.orders, fractions),
        }.get(measure.name, [])
        if holes:
            recovered |= recovered_from(store.read("audit", item.id)[1], holes)
    shapes = [
        geometry_from(store.read("audit", item.id)[1], measure.method, plan.orders, fractions)
        for measure, item in done.items()
        if measure.name == "geometry"
    ]
    tables = audit_tables_of(read, recovered, shapes, plan.orders, fractions)
    evaluated, _ = statistics.whole_curves(predictions(work.work, store), work.work.trials)
    if evaluated and len(tables["geometry"]):
        classes = len(np.unique(next(iter(evaluated.values())).labels))
        tables["leads"] = linear_leads(statistics.curves(evaluated), tables["geometry"], 1 / max(2, classes))
    return tables


def write_tables(tables: Mapping[str, pd.DataFrame], folder: Path) -> None:
    for name, table in tables.items():
        write_atomically(folder / "audit" / f"{name}.csv", table.to_csv(index=False).encode())


def read_table(folder: Path, name: str) -> pd.DataFrame | None:
    """One that `write_tables` wrote, None if there is none."""
    path = folder / "audit" / f"{name}.csv"
    if not path.exists():
        return None
    try:
        return pd.read_csv(path, dtype=dict.fromkeys(("method", "order", "imputer", "masks", "why"), str))
    except (ValueError, OSError) as error:
        raise DataError(f"{path} is no table ({error}): make it again with `roadworthy audit {folder}`") from error
