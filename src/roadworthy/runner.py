"""Which work is missing? Do it, once. Deed and record are one rename; `pending` only reads."""

import platform
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any, NamedTuple, Protocol

import torch

from roadworthy.executors.local import OnDone
from roadworthy.items import Fingerprints, Item, map_items, trial_items
from roadworthy.plan import Plan
from roadworthy.store import Store, verdict_arrays
from roadworthy.types import Dot, Verdict
from roadworthy.work import Done, MapTask, SweepTask, Task, built, fingerprints, groups, perform

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
    trials: dict[Dot, Item]
    missing_maps: tuple[str, ...]
    missing_trials: tuple[Dot, ...]

    @property
    def total(self) -> int:
        return len(self.maps) + len(self.trials)

    @property
    def missing(self) -> int:
        return len(self.missing_maps) + len(self.missing_trials)


def pending(plan: Plan, store: Store, prints: Fingerprints | None = None) -> Work:
    """What a run would do. A map is missing only where a missing trial needs it, or nothing has it yet."""
    prints = prints or fingerprints(plan)
    maps, trials = map_items(plan, prints), dict(trial_items(plan, prints))
    have_maps, have_trials = store.ids("map"), store.ids("trial")
    return Work(
        plan,
        prints,
        maps,
        trials,
        tuple(name for name, item in maps.items() if item.id not in have_maps),
        tuple(dot for dot, item in trials.items() if item.id not in have_trials),
    )


def run(
    plan: Plan, store: Store, executor: Executor, on_event: OnEvent, on_start: Callable[[Work, list[str]], None]
) -> Work:
    """Do what is missing; returns what is missing still (that which failed)."""
    with store.locked():
        complaints = store.clean()
        work = pending(plan, store)
        on_start(work, complaints)
        notes = _Notes(store, work)
        try:
            executor.run(_map_tasks(work), notes.recorder(on_event))
            work = pending(plan, store, work.prints)
            executor.run(_sweep_tasks(work, store), notes.recorder(on_event))
        finally:
            notes.save()
        return pending(plan, store, work.prints)


def _map_tasks(work: Work) -> Iterator[Task]:
    for names in groups(work.plan, work.missing_maps):
        yield MapTask(work.plan, names)


def _sweep_tasks(work: Work, store: Store) -> Iterator[Task]:
    """One task per curve; the map is read when its turn comes."""
    curves: dict[Dot, list[float]] = {}
    for dot in work.missing_trials:
        if dot.method not in work.missing_maps:
            curves.setdefault(dot._replace(fraction=0.0), []).append(dot.fraction)
    for dot, fractions in curves.items():
        scores = store.read_scores(work.maps[dot.method].id)
        yield SweepTask(
            work.plan, dot.method, dot.order, dot.imputer, dot.judge, dot.seed, tuple(sorted(fractions)), scores
        )


class _Notes:
    """Writes results as they come, and keeps the provenance."""

    def __init__(self, store: Store, work: Work):
        self.store, self.work = store, work
        before = store.provenance()
        self.durations: dict[str, float] = before.get("durations", {})
        self.content = {**provenance(work.prints), "durations": self.durations}
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
        self.store.write_provenance(self.content)
        self.saved = time.monotonic()


def _items_of(work: Work, task: Task, result: Done | str) -> Iterator[tuple[Item, dict[str, Any]]]:
    """The items that a task was to give, with their arrays if it did."""
    results = {} if isinstance(result, str) else result.results
    if isinstance(task, MapTask):
        for name in task.methods:
            yield work.maps[name], {"scores": results.get(name)}
        return
    for fraction in task.fractions:
        dot = Dot(task.method, task.order, task.imputer, task.judge, fraction, task.seed)
        yield work.trials[dot], verdict_arrays(results[fraction]) if results else {}


def provenance(prints: Fingerprints) -> dict[str, Any]:
    names = ("roadworthy", "torch", "numpy", "scipy", "numba", "captum")
    return {
        "fingerprints": prints._asdict(),
        "versions": {"python": platform.python_version(), **{name: version(name) for name in names}},
        "machine": {
            "system": platform.system(),
            "processor": platform.machine(),
            "cores": torch.get_num_threads(),
            "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        },
        "command": " ".join(sys.argv[1:2]),
    }


def verdicts(work: Work, store: Store) -> dict[Dot, Verdict]:
    """What is there, as dots; gaps are gaps."""
    missing = set(work.missing_trials)
    return {dot: store.read_verdict(item.id) for dot, item in work.trials.items() if dot not in missing}


class Runtime(NamedTuple):
    """The paper's runtime table: what a strategy costs per curve, all its fractions together."""

    judge: str
    imputer: str
    seconds: float
    relative: float
    """to retraining with fixed fill, or else to the dearest strategy here"""


def runtimes(work: Work, store: Store) -> list[Runtime]:
    durations = store.provenance().get("durations", {})
    curves: dict[tuple[str, str], dict[Dot, float]] = {}
    for dot, item in work.trials.items():
        if item.id in durations:
            curve = curves.setdefault((dot.judge, dot.imputer), {})
            curve[dot._replace(fraction=0.0)] = curve.get(dot._replace(fraction=0.0), 0.0) + durations[item.id]
    means = {strategy: sum(curve.values()) / len(curve) for strategy, curve in curves.items()}
    base = means.get(("retrained", "fixed"), max(means.values(), default=1.0))
    return [Runtime(*strategy, seconds, seconds / base) for strategy, seconds in means.items()]


class Estimate(NamedTuple):
    """Seconds on one worker of this machine."""

    maps: float
    trials: float


def estimate(plan: Plan, images: int = 16) -> Estimate:
    """Time a few images through every group of maps and every imputer, and multiply."""
    few = replace(plan, data={**plan.data, "images": images}, map_batch=images, batch=images)
    total = len(built(plan).data)
    share = total / len(built(few).data)
    done = [perform(MapTask(few, names)) for names in groups(few, list(few.maps))]
    maps, trials = sum(one.seconds for one in done) * share, 0.0
    some = next(iter(done[0].results.values()))
    for imputer in few.imputers:
        task = SweepTask(few, next(iter(few.maps)), few.orders[0], imputer, few.judges[0], 0, (0.5,), some)
        perform(task)  # the first time compiles
        sweeps = sum(sweep[2] == imputer for sweep in plan.sweeps())
        trials += perform(task).seconds * share * sweeps * len(plan.fractions)
    return Estimate(maps, trials)
