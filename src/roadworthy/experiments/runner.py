"""Which work is missing? Do it, once. Deed and record are one rename; `pending` only reads."""

import platform
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any, NamedTuple, Protocol

import torch

from roadworthy.core.results import Point, Predictions
from roadworthy.core.types import Dataset, Imputer
from roadworthy.experiments.auditing import AuditTask
from roadworthy.experiments.build import build_imputers, fingerprints, trained_imputer
from roadworthy.experiments.executors.local import OnDone
from roadworthy.experiments.items import (
    Fingerprints,
    Item,
    imputer_items,
    map_items,
    model_items,
    train_map_items,
    trial_items,
)
from roadworthy.experiments.plans.plan import Plan
from roadworthy.experiments.stores.run_directory import Store, prediction_arrays
from roadworthy.experiments.work import (
    Arrays,
    Done,
    ImputerTask,
    MapTask,
    SweepTask,
    Task,
    TuneTask,
    check_training,
    groups,
)

_SAVE_EVERY = 10.0
"""Seconds between two notes of durations; a crash loses no more of them, and no result."""


class Executor(Protocol):
    def run(self, tasks: Iterator[Task], on_done: OnDone) -> None: ...


class Event(NamedTuple):
    """What the door may show: an item done or failed."""

    item: Item
    seconds: float
    failure: str | None = None


OnEvent = Callable[[Event], None]


@dataclass(frozen=True, eq=False)
class Work:
    """All items of a plan, and which are missing from a store."""

    plan: Plan
    prints: Fingerprints
    maps: dict[str, Item]
    trials: dict[Point, Item]
    missing_maps: tuple[str, ...]
    missing_trials: tuple[Point, ...]
    train_maps: dict[str, Item] = field(default_factory=dict)
    """maps of the train split, for retraining"""
    models: dict[tuple[str, int], Item] = field(default_factory=dict)
    """(imputer, seed) to the model tuned with random masks"""
    missing_train_maps: tuple[str, ...] = ()
    missing_models: tuple[tuple[str, int], ...] = ()
    imputers: dict[str, Item] = field(default_factory=dict)
    """imputers that are trained"""
    missing_imputers: tuple[str, ...] = ()

    @property
    def total(self) -> int:
        """Items; some points share one."""
        trials = {item.id for item in self.trials.values()}
        return len(self.maps) + len(self.train_maps) + len(self.models) + len(self.imputers) + len(trials)

    @property
    def missing(self) -> int:
        trials = {self.trials[point].id for point in self.missing_trials}
        models = len(self.missing_models) + len(self.missing_imputers)
        return len(self.missing_maps) + len(self.missing_train_maps) + models + len(trials)


def pending(plan: Plan, store: Store, prints: Fingerprints | None = None) -> Work:
    """What a run would do. A map is missing only where a missing trial needs it, or nothing has it yet."""
    prints = prints or fingerprints(plan)
    maps, trials = map_items(plan, prints), dict(trial_items(plan, prints))
    train_maps, models = train_map_items(plan, prints), model_items(plan, prints)
    imputers = imputer_items(plan, prints)
    have_maps, have_trials, have_models = store.ids("map"), store.ids("trial"), store.ids("model")
    return Work(
        plan,
        prints,
        maps,
        trials,
        tuple(name for name, item in maps.items() if item.id not in have_maps),
        tuple(point for point, item in trials.items() if item.id not in have_trials),
        train_maps,
        models,
        tuple(name for name, item in train_maps.items() if item.id not in have_maps),
        tuple(name for name, item in models.items() if item.id not in have_models),
        imputers,
        tuple(name for name, item in imputers.items() if item.id not in have_models),
    )


def run(
    plan: Plan, store: Store, executor: Executor, on_event: OnEvent, on_start: Callable[[Work, list[str]], None]
) -> Work:
    """Do what is missing; returns what is missing still (that which failed)."""
    with store.locked():
        complaints = store.clean()
        work = pending(plan, store)
        if work.missing:
            check_training(plan)
        on_start(work, complaints)
        notes = Notes(store, work)
        try:
            executor.run(map_tasks(work, work.missing_maps, work.missing_train_maps), notes.recorder(on_event))
            executor.run(_imputer_tasks(work, store), notes.recorder(on_event))
            work = pending(plan, store, work.prints)
            executor.run(_tune_tasks(work, store), notes.recorder(on_event))
            work = pending(plan, store, work.prints)
            executor.run(_sweep_tasks(work, store), notes.recorder(on_event))
        finally:
            notes.save()
        return pending(plan, store, work.prints)


def map_tasks(work: Work, methods: Sequence[str], of_train: Sequence[str] = ()) -> Iterator[Task]:
    for names in groups(work.plan, methods):
        yield MapTask(work.plan, names)
    for names in groups(work.plan, of_train):
        yield MapTask(work.plan, names, train=True)


def _imputer_tasks(work: Work, store: Store) -> Iterator[Task]:
    for name in work.missing_imputers:
        yield ImputerTask(work.plan, name, store.checkpoint_path(work.imputers[name].id).absolute())


def _tune_tasks(work: Work, store: Store) -> Iterator[Task]:
    for imputer, seed in work.missing_models:
        if imputer not in work.missing_imputers:
            checkpoint = store.checkpoint_path(work.models[imputer, seed].id).absolute()
            yield TuneTask(work.plan, imputer, seed, checkpoint, painter(work, store, imputer))


def painter(work: Work, store: Store, imputer: str) -> Arrays | None:
    """The weights of an imputer that is trained."""
    return store.read("model", work.imputers[imputer].id)[1] if imputer in work.imputers else None


def imputers_at_hand(work: Work, store: Store, data: Dataset) -> dict[str, Imputer]:
    """Those of the plan, and of those that are trained the ones that are there."""
    there = [name for name in work.imputers if name not in work.missing_imputers]
    return {
        **build_imputers(work.plan, data),
        **{name: trained_imputer(store.read("model", work.imputers[name].id)[1]) for name in there},
    }


def _sweep_tasks(work: Work, store: Store) -> Iterator[Task]:
    """One task per curve, or per training; the maps are read when their turn comes."""
    curves: dict[Point, list[float]] = {}
    trainings: dict[str, Point] = {}
    for point in work.missing_trials:
        if not _has_what_it_needs(work, point):
            continue
        if point.evaluator == "retrain":
            trainings.setdefault(work.trials[point].id, point)
        else:
            curves.setdefault(point._replace(fraction=0.0), []).append(point.fraction)
    for point, fractions in curves.items():
        yield replace(_sweep_task(work, store, point), fractions=tuple(sorted(fractions)))
    for id, point in trainings.items():
        yield replace(
            _sweep_task(work, store, point),
            train_maps=store.read_maps(work.train_maps[point.method].id),
            checkpoint=store.checkpoint_path(id).absolute(),
        )


def _has_what_it_needs(work: Work, point: Point) -> bool:
    """Its maps, its imputer and the model that evaluators it; what failed may be tried again, its trials wait."""
    if point.method in work.missing_maps or point.imputer in work.missing_imputers:
        return False
    if point.evaluator == "retrain":
        return point.method not in work.missing_train_maps
    return point.evaluator != "fine-tuned" or (point.imputer, point.seed) not in work.missing_models


def _sweep_task(work: Work, store: Store, point: Point) -> SweepTask:
    scores = store.read_maps(work.maps[point.method].id)
    tuned = work.models[point.imputer, point.seed] if point.evaluator == "fine-tuned" else None
    return SweepTask(
        work.plan, point.method, point.order, point.imputer, point.evaluator, point.seed, (point.fraction,), scores,
        weights=store.read("model", tuned.id)[1] if tuned else None, painter=painter(work, store, point.imputer),
    )  # fmt: skip


class Notes:
    """Writes results as they come, and keeps the manifest."""

    def __init__(self, store: Store, work: Work):
        self.store, self.work = store, work
        before = store.manifest()
        self.durations: dict[str, float] = before.get("durations", {})
        # Paths in the plan are relative to its folder: whoever needs the data again finds it by that.
        subject = {"fingerprints": work.prints._asdict(), "folder": str(work.plan.folder.resolve())}
        self.content = {**origin(), **subject, "durations": self.durations}
        self.save()

    def recorder(self, on_event: OnEvent) -> OnDone:
        def on_done(task: Task, result: Done | str) -> None:
            for item, arrays in _items_of(self.work, task, result):
                if isinstance(result, str):
                    self.store.write_failure(item, result)
                    on_event(Event(item, 0.0, result))
                    continue
                self.store.write(item, arrays)
                seconds = result.seconds / len(result.results)
                self.durations[item.id] = round(seconds, 6)
                on_event(Event(item, seconds))
            if time.monotonic() - self.saved > _SAVE_EVERY:
                self.save()

        return on_done

    def save(self) -> None:
        self.store.write_manifest(self.content)
        self.saved = time.monotonic()


def _items_of(work: Work, task: Task, result: Done | str) -> Iterator[tuple[Item, dict[str, Any]]]:
    """The items that a task was to give, with their arrays if it did."""
    results = {} if isinstance(result, str) else result.results
    if isinstance(task, MapTask):
        for name in task.methods:
            yield (work.train_maps if task.train else work.maps)[name], {"scores": results.get(name)}
        return
    if isinstance(task, ImputerTask):
        yield work.imputers[task.imputer], results.get(task.imputer, {})
        return
    if isinstance(task, TuneTask):
        yield work.models[task.imputer, task.seed], results.get((task.imputer, task.seed), {})
        return
    if isinstance(task, AuditTask):
        yield task.item, results.get(task.item.id, {})
        return
    curves = {} if isinstance(result, str) else result.curves
    for fraction in task.fractions:
        point = Point(task.method, task.order, task.imputer, task.evaluator, fraction, task.seed)
        yield (
            work.trials[point],
            {**prediction_arrays(results[fraction]), **curves.get(fraction, {})} if results else {},
        )


def origin() -> dict[str, Any]:
    """When, with what and on what something is made."""
    names = ("roadworthy", "torch", "numpy", "scipy", "numba", "captum")
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {"python": platform.python_version(), **{name: version(name) for name in names}},
        "machine": {
            "system": platform.system(),
            "processor": platform.machine(),
            "cores": torch.get_num_threads(),
            "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        },
        "command": " ".join(sys.argv[1:2]),
    }


def predictions(work: Work, store: Store) -> dict[Point, Predictions]:
    """What is there, as points; gaps are gaps."""
    missing = set(work.missing_trials)
    return {point: store.read_predictions(item.id) for point, item in work.trials.items() if point not in missing}


class Runtime(NamedTuple):
    """The paper's runtime table: what a strategy costs per curve, all its fractions together."""

    evaluator: str
    imputer: str
    seconds: float
    relative: float
    """to retraining with fixed fill, or else to the dearest strategy here"""


def runtimes(work: Work, store: Store) -> list[Runtime]:
    durations = store.manifest().get("durations", {})
    curves: dict[tuple[str, str], dict[Point, float]] = {}
    for point, item in work.trials.items():
        if item.id in durations:
            curve = curves.setdefault((point.evaluator, point.imputer), {})
            curve[point._replace(fraction=0.0)] = curve.get(point._replace(fraction=0.0), 0.0) + durations[item.id]
    means = {strategy: sum(curve.values()) / len(curve) for strategy, curve in curves.items()}
    base = means.get(("retrain", "fixed"), max(means.values(), default=1.0))
    return [Runtime(*strategy, seconds, seconds / base) for strategy, seconds in means.items()]
