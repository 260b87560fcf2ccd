"""Run the pending items of an experiment, once each. Only the driver writes; looking at a store only reads."""

import heapq
import logging
import platform
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import torch

from roadworthy.core.text import printable
from roadworthy.experiments.design import Design
from roadworthy.experiments.items import Arrays, Item
from roadworthy.experiments.pending import Survey, survey
from roadworthy.experiments.stores import Store
from roadworthy.experiments.stores.manifests import TIMES

log = logging.getLogger("roadworthy")

_SAVE_EVERY = 10.0
"""Seconds at least between two writes of the manifest; a crash loses durations of that long, and no result."""
_SAVE_SHARE = 0.02
"""of a run's time at most for these writes: the manifest names every item, so that each takes longer than the last"""
_WRITERS = 8
"""Items of a task that are written at once: each waits for the disk, which flushes several files together."""


@dataclass(frozen=True, eq=False)
class Task:
    """Items that are computed together, because they share images, maps or samples."""

    items: tuple[Item, ...]
    inputs: Mapping[str, Arrays]
    checkpoint: Path | None

    @property
    def id(self) -> str:
        return self.items[0].id


class Outcome(NamedTuple):
    """What became of a task: the arrays of its items, or a traceback."""

    arrays: Sequence[Arrays]
    seconds: float
    failure: str = ""
    cpu_seconds: float = 0.0
    """of processor time, of all threads: other processes on a busy machine do not count"""


class Executor(Protocol):
    """Computes tasks, in this process or elsewhere."""

    def started(self) -> AbstractContextManager["Session"]: ...


class Session(Protocol):
    @property
    def room(self) -> int:
        """How many more tasks it takes now."""

    def submit(self, task: Task) -> None: ...

    def completed(self) -> tuple[Task, Outcome]:
        """Wait for the next task that ends."""


class Event(NamedTuple):
    """An item is done or failed."""

    item: Item
    seconds: float
    failure: str = ""


class Listener(Protocol):
    def on_start(self, survey: Survey) -> None:
        """More items are known to be missing."""

    def on_stage(self, text: str) -> None:
        """What is done before the first item."""

    def on_begin(self, items: Sequence[Item]) -> None:
        """These items are computed now."""

    def on_event(self, event: Event) -> None: ...


class Silent:
    def on_start(self, survey: Survey) -> None:
        pass

    def on_stage(self, text: str) -> None:
        pass

    def on_begin(self, items: Sequence[Item]) -> None:
        pass

    def on_event(self, event: Event) -> None:
        pass


GroupKey = Callable[[Item], Any]


def execute(
    design: Design, store: Store, executor: Executor, group_key: GroupKey, listener: Listener | None = None
) -> Survey:
    """Run until nothing is missing, or nothing can be done about it; returns the state of the store."""
    listener = listener or Silent()
    manifest = ManifestWriter(store)
    if not (state := survey(design, store)).missing:
        return state
    try:
        with executor.started() as session:
            while state.missing:
                listener.on_start(state)
                failed = run_items(state.missing, store, session, group_key, manifest, listener)
                state = survey(design, store)
                if failed:
                    break
        return state
    finally:
        manifest.save()


def run_items(
    items: Sequence[Item],
    store: Store,
    session: Session,
    group_key: GroupKey,
    manifest: "ManifestWriter",
    listener: Listener,
) -> int:
    """Compute items in dependency order; returns how many failed. What needs a failed item is left out."""
    graph, failed = TaskGraph(items, group_key), 0
    running: dict[str, int] = {}
    while True:
        while session.room and (number := graph.next()) is not None:
            group = graph.groups[number]
            needs = {need.id: need for item in group for need in item.needs}
            inputs = {id: store.read(need) for id, need in needs.items()}
            checkpoint = store.checkpoint_path(group[0]) if len(group) == 1 else None
            running[group[0].id] = number
            listener.on_begin(group)
            session.submit(Task(group, inputs, checkpoint))
        if not running:
            return failed
        task, outcome = session.completed()
        number = running.pop(task.id)
        if outcome.failure:
            failed += len(task.items)
            log.error("%s", printable(f"{_name(task)} failed: {_error_line(outcome.failure)}"))
            for item in task.items:
                store.write_failure(item, outcome.failure)
                listener.on_event(Event(item, 0.0, outcome.failure))
            continue
        log.debug("%s done in %.3f s", _name(task), outcome.seconds)
        each, cpu = (seconds / len(task.items) for seconds in (outcome.seconds, outcome.cpu_seconds))
        for item in _written(task.items, outcome.arrays, store):
            manifest.duration(item, each, cpu)
            listener.on_event(Event(item, each))
        graph.done(number)


def _written(items: Sequence[Item], arrays: Sequence[Arrays], store: Store) -> Iterator[Item]:
    """Items in their order, each once it is stored."""
    pairs = list(zip(items, arrays, strict=True))
    if len(pairs) == 1:
        store.write(*pairs[0])
        yield items[0]
        return
    with ThreadPoolExecutor(min(_WRITERS, len(pairs))) as writers:
        for item, _ in zip(items, writers.map(lambda pair: store.write(*pair), pairs), strict=True):
            yield item


def _name(task: Task) -> str:
    kind, label = task.items[0].kind, task.items[0].label
    details = ", ".join(f"{key} {value}" for key, value in label.items() if value not in ("", None))
    return f"{kind} ({details}{f' and {len(task.items) - 1} more' if len(task.items) > 1 else ''})"


def _error_line(traceback: str) -> str:
    """The error at the end of a traceback, with its notes.

    >>> _error_line("Traceback:\\n  File ...\\nValueError: too small\\nwhile explaining\\n")
    'ValueError: too small; while explaining'
    """
    lines = traceback.strip().splitlines()
    last = list(takewhile(lambda line: not line.startswith(" "), reversed(lines)))
    return "; ".join(reversed(last))


class TaskGraph:
    """Groups of items, handed out in their order as soon as what they need is done."""

    def __init__(self, items: Sequence[Item], group_key: GroupKey):
        grouped: dict[Any, list[Item]] = {}
        for item in items:
            grouped.setdefault(group_key(item), []).append(item)
        self.groups = [tuple(group) for group in grouped.values()]
        number_of = {item.id: number for number, group in enumerate(self.groups) for item in group}
        self._waits = [
            {number_of[need.id] for item in group for need in item.needs if need.id in number_of}
            for group in self.groups
        ]
        self._dependents: dict[int, list[int]] = {}
        for number, needed in enumerate(self._waits):
            for other in needed:
                self._dependents.setdefault(other, []).append(number)
        self._ready = [number for number, needed in enumerate(self._waits) if not needed]
        heapq.heapify(self._ready)

    def next(self) -> int | None:
        return heapq.heappop(self._ready) if self._ready else None

    def done(self, number: int) -> None:
        for dependent in self._dependents.get(number, ()):
            self._waits[dependent].discard(number)
            if not self._waits[dependent]:
                heapq.heappush(self._ready, dependent)


def grouping(sources: Mapping[str, Any]) -> GroupKey:
    """What is computed together: maps of one block with a common source, all curves of a method on a block.

    Curves that need a training are a group of their own, so that the others do not wait for it or fail with it.
    `sources`: method to what its maps are computed from.
    """

    def key(item: Item) -> Any:
        label, block = item.label, item.block
        if block is None or item.kind == "baseline":
            return item.id
        if item.kind == "maps" and ("copy_of" not in label or "randomized" in item.spec):
            source = sources[label.get("copy_of", label["method"])]
            return item.kind, block.split, block.index, source, item.spec.get("randomized", 0.0)
        trainings = tuple(need.id for need in item.needs if need.block is None)
        return item.kind, block.split, block.index, label["method"], label.get("evaluator"), trainings

    return key


class ManifestWriter:
    """Keeps the durations of items in the manifest: `durations` by the clock, `cpu_seconds` in processor time."""

    def __init__(self, store: Store):
        self._store, self._next = store, time.monotonic() + _SAVE_EVERY
        self._times: dict[str, dict[str, float]] = {name: dict(store.manifest().get(name, {})) for name in TIMES}

    def duration(self, item: Item, seconds: float, cpu_seconds: float) -> None:
        for name, value in zip(TIMES, (seconds, cpu_seconds), strict=True):
            self._times[name][item.id] = round(value, 6)
        if time.monotonic() > self._next:
            self.save()

    def save(self) -> None:
        started = time.monotonic()
        self._store.write_manifest({**self._store.manifest(), **self._times})
        ended = time.monotonic()
        self._next = ended + max(_SAVE_EVERY, (ended - started) / _SAVE_SHARE)


def origin() -> dict[str, Any]:
    """When, with what and on what something was computed."""
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
