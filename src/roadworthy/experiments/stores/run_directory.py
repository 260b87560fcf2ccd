"""One directory of results: a file per map and per trial, written whole or not at all.

    plan.toml  manifest.json  {maps,trials,models,audits}/ID.safetensors  models/ID.checkpoint  failed/ID.json
    aside/  lock

The item's JSON stands in the file's header, with a sum of the tensors. What is corrupt or foreign is named, set aside
and done again. One run at a time writes; a dead run's lock is taken over.
"""

import hashlib
import json
import os
import re
import socket
import struct
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from roadworthy.core.errors import StoreError
from roadworthy.core.files import write_atomically
from roadworthy.core.results import Point, Predictions
from roadworthy.experiments.items import Item, Kind, canonical

Arrays = Mapping[str, NDArray[Any]]

FOLDERS: dict[Kind, str] = {"map": "maps", "trial": "trials", "model": "models", "audit": "audits"}
HEARTBEAT = 20.0
"""Seconds between two signs of life of the run that holds the lock."""
SILENCE = 300.0
"""Seconds without one after which a run on another machine counts as dead."""
_ID = re.compile(r"[0-9a-f]{32}\Z")
_LARGEST_HEADER = 1 << 20


@final
@dataclass(frozen=True)
class Store:
    root: Path

    def path(self, kind: Kind, id: str) -> Path:
        if not _ID.match(id):
            raise StoreError(f"{id!r} is no item's id: 32 hexadecimal digits are")
        return self.root / FOLDERS[kind] / f"{id}.safetensors"

    def ids(self, kind: Kind) -> set[str]:
        """What is there, by name only."""
        names = (entry.name for entry in _entries(self.root / FOLDERS[kind]))
        return {name.removesuffix(".safetensors") for name in names if _ID.match(name.removesuffix(".safetensors"))}

    def write(self, item: Item, arrays: Arrays) -> None:
        tensors = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
        header = {"kind": item.kind, "spec": item.spec, "label": item.label, "sum": _sum(tensors)}
        # One entry only: safetensors writes several in an order that changes from run to run.
        write_atomically(self.path(item.kind, item.id), save(tensors, {"item": canonical(header)}))
        self.failure_path(item.id).unlink(missing_ok=True)
        self.checkpoint_path(item.id).unlink(missing_ok=True)

    def checkpoint_path(self, id: str) -> Path:
        """Where the training for an item in hand keeps what it takes to go on; gone when the item is there."""
        return self.root / "models" / f"{id}.checkpoint"

    def read(self, kind: Kind, id: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """The header (kind, spec, label) and the arrays; StoreError says what is wrong with the file."""
        path = self.path(kind, id)
        content = _bytes(path)
        header = _header(path, content)
        try:
            arrays = load(content)
        except (SafetensorError, ValueError, KeyError) as error:
            raise StoreError(f"{path} is corrupt ({error})") from error
        if _sum(arrays) != header["sum"]:
            raise StoreError(f"{path} is corrupt: its numbers do not have the sum that its header names")
        if Item(header["kind"], header["spec"], {}).id != id or header["kind"] != kind:
            raise StoreError(f"{path} is foreign: its header describes another item than its name")
        return header, arrays

    def read_maps(self, id: str) -> NDArray[np.float32]:
        return self.read("map", id)[1]["scores"]

    def read_predictions(self, id: str, kind: Kind = "trial") -> Predictions:
        return _prediction(self.read(kind, id)[1])

    def predictions(self) -> dict[Point, Predictions]:
        """All trials by what they are called, for a store without a plan."""
        found = {}
        for id in sorted(self.ids("trial")):
            header, arrays = self.read("trial", id)
            found[Point(**header["label"])] = _prediction(arrays)
        return found

    def set_aside(self, path: Path) -> Path:
        """Move a file that cannot be trusted where no one reads it."""
        aside = self.root / "aside"
        aside.mkdir(exist_ok=True)
        target = aside / f"{path.name}.{time.time_ns()}"
        path.rename(target)
        return target

    def clean(self) -> list[str]:
        """Set aside whatever is not a whole item of this store, and say what and why."""
        complaints = []
        done = self.ids("trial") | self.ids("model")
        for kind, folder in FOLDERS.items():
            for entry in sorted(_entries(self.root / folder), key=lambda entry: entry.name):
                path = Path(entry.path)
                if path.name.startswith("."):  # a writer that died left it; its content was never part of the store
                    path.unlink()
                    continue
                if kind == "model" and path.suffix == ".checkpoint" and _ID.match(path.stem):
                    if path.stem in done:
                        path.unlink()
                    continue
                try:
                    if path.suffix != ".safetensors" or not _ID.match(path.stem):
                        raise StoreError(f"{path} is foreign: items are named by 32 hexadecimal digits")
                    self.read(kind, path.stem)
                except StoreError as error:
                    complaints.append(f"{error}; moved to {self.set_aside(path)}")
        return complaints

    # -- failures, plan and manifest -----------------------------------------------------------------------------

    def failure_path(self, id: str) -> Path:
        return self.root / "failed" / f"{id}.json"

    def write_failure(self, item: Item, traceback: str) -> None:
        content = {"kind": item.kind, "label": dict(item.label), "traceback": traceback}
        write_atomically(self.failure_path(item.id), json.dumps(content, indent=1).encode())

    def failures(self) -> dict[str, dict[str, Any]]:
        return {Path(e.path).stem: json.loads(Path(e.path).read_text()) for e in _entries(self.root / "failed")}

    def manifest(self) -> dict[str, Any]:
        path = self.root / "manifest.json"
        return json.loads(path.read_text()) if path.exists() else {}

    def write_manifest(self, content: Mapping[str, Any]) -> None:
        write_atomically(self.root / "manifest.json", json.dumps(content, indent=1, sort_keys=True).encode())

    # -- one writer at a time ----------------------------------------------------------------------------------------

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the store's lock; a run that is alive elsewhere is an error that names it."""
        self.root.mkdir(parents=True, exist_ok=True)
        lock = self.root / "lock"
        _acquire(lock)
        over = threading.Event()
        beat = threading.Thread(target=_beat, args=(lock, over), daemon=True)
        beat.start()
        try:
            yield
        finally:
            over.set()
            beat.join()
            lock.unlink(missing_ok=True)


def save_predictions(
    predictions: Mapping[Point, Predictions], root: Path, note: Mapping[str, Any] | None = None
) -> None:
    """A store without a plan: each trial is named by its point and by what was evaluated, the plain Predictions of its model.

    `note` is kept as its manifest.
    """
    store = Store(root)
    if store.ids("trial"):
        raise StoreError(f"{root} holds trials already: save into a new folder")
    with store.locked():
        store.write_manifest(note or {})
        for point, prediction in predictions.items():
            plain = predictions[point._replace(fraction=0.0)]
            spec = {**point._asdict(), "subject": _sum(prediction_arrays(plain))}
            store.write(Item("trial", spec, point._asdict()), prediction_arrays(prediction))


_PREDICTIONS = ("ids", "labels", "predicted", "probability")


def prediction_arrays(prediction: Predictions) -> dict[str, NDArray[Any]]:
    return {name: np.asarray(getattr(prediction, name)) for name in _PREDICTIONS}


def _prediction(arrays: Arrays) -> Predictions:
    """A trial's file may hold more: the training curve of its evaluator."""
    return Predictions(**{name: arrays[name] for name in _PREDICTIONS})


def merge_stores(sources: Sequence[Store], into: Store, dry_run: bool = False) -> int:
    """Copy the whole items that `into` lacks, and note their durations; returns how many."""
    with nullcontext() if dry_run else into.locked():
        copied, have = 0, {kind: into.ids(kind) for kind in FOLDERS}
        durations = dict(into.manifest().get("durations", {}))
        for source in sources:
            if not source.root.is_dir():
                raise StoreError(f"{source.root} is no store: there is no such folder")
            for kind in FOLDERS:
                for id in sorted(source.ids(kind) - have[kind]):
                    source.read(kind, id)  # a corrupt item is an error here, not a guest there
                    have[kind].add(id)
                    copied += 1
                    if not dry_run:
                        write_atomically(into.path(kind, id), source.path(kind, id).read_bytes())
            durations |= source.manifest().get("durations", {})
            if not dry_run and not (into.root / "plan.toml").exists() and (source.root / "plan.toml").exists():
                write_atomically(into.root / "plan.toml", (source.root / "plan.toml").read_bytes())
        if not dry_run:
            base = into.manifest() or next((source.manifest() for source in sources), {})
            into.write_manifest({**base, "durations": durations})
    return copied


def _acquire(lock: Path) -> None:
    owner = json.dumps({"host": socket.gethostname(), "pid": os.getpid()}).encode()
    for _ in range(10):
        try:
            handle = os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        except FileExistsError:
            if alive := _alive(lock):
                raise StoreError(
                    f"{lock.parent} is in use by {alive}: wait for that run, or stop it (a lock left by a dead run is "
                    "taken over by itself)"
                ) from None
            dead = lock.with_name(f"lock.dead-{os.getpid()}-{time.time_ns()}")
            try:  # renaming is atomic: of two runs that find a dead lock, one wins
                lock.rename(dead)
                dead.unlink()
            except FileNotFoundError:
                pass
            continue
        with os.fdopen(handle, "wb") as file:
            file.write(owner)
        return
    raise StoreError(f"{lock} could not be had: other runs keep taking it")


def _alive(lock: Path) -> str | None:
    """Who holds the lock, or None if that run is dead."""
    try:
        age = time.time() - lock.stat().st_mtime
        owner = json.loads(lock.read_bytes() or b"{}")
    except FileNotFoundError:
        return None
    except ValueError:
        owner = {}
    host, pid = owner.get("host"), owner.get("pid")
    name = f"process {pid} on {host} (last sign of life {age:.0f} s ago)"
    if age > SILENCE:
        return None
    if host == socket.gethostname() and isinstance(pid, int):
        return name if _process_exists(pid) else None
    return name


def _process_exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _beat(lock: Path, over: threading.Event) -> None:
    while not over.wait(HEARTBEAT):
        try:
            os.utime(lock)
        except OSError:
            return


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return [entry for entry in entries if entry.is_file(follow_symlinks=False)]
    except FileNotFoundError:
        return []


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise StoreError(f"{path} could not be read ({error.strerror})") from error


def _header(path: Path, content: bytes) -> dict[str, Any]:
    """The item in the metadata of a safetensors file, looked at before anything believes its lengths."""
    if len(content) < 8 or (length := struct.unpack("<Q", content[:8])[0]) > min(_LARGEST_HEADER, len(content) - 8):
        raise StoreError(f"{path} is no item: its header is cut short or claims to be larger than the file")
    try:
        item = json.loads(json.loads(content[8 : 8 + length])["__metadata__"]["item"])
        return {key: item[key] for key in ("kind", "spec", "label", "sum")}
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{path} is no item: its header does not describe one") from error


def _sum(arrays: Arrays) -> str:
    digest = hashlib.sha256()
    for name in sorted(arrays):
        digest.update(f"{name} {arrays[name].dtype} {arrays[name].shape}".encode())
        digest.update(np.ascontiguousarray(arrays[name]).tobytes())
    return digest.hexdigest()
