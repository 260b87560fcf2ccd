"""One directory of results: a file per item, written completely or not at all.

    plan.toml  manifest.json  {maps,predictions,models,audits}/ID.safetensors  models/ID.checkpoint  failed/ID.json
    quarantine/  lock

The item's JSON is in the file's header, with a checksum of the arrays. A corrupt or foreign file is named, moved to
quarantine and computed again. One run at a time writes. The lock is the operating system's, so it ends with the process
that holds it; on a network file system whose locks do not reach other machines, start one run at a time yourself.
"""

import hashlib
import json
import os
import re
import struct
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from roadworthy.core.errors import StoreError
from roadworthy.core.files import write_atomically
from roadworthy.experiments.items import Arrays, Item, canonical, item_id

FORMAT = 2
"""Of the directory; written to its manifest, and refused where it is another."""

FOLDERS: Mapping[str, str] = {
    "baseline": "predictions",
    "predictions": "predictions",
    "maps": "maps",
    "imputer": "models",
    "model": "models",
    "audit": "audits",
}
"""Each kind of item, and the folder of its files."""

_ID = re.compile(r"[0-9a-f]{32}\Z")
_LARGEST_HEADER = 4 << 20


@final
@dataclass(frozen=True)
class RunDirectory:
    root: Path

    def path(self, kind: str, id: str) -> Path:
        if not _ID.match(id):
            raise StoreError(f"{id!r} is not an item's id: expected 32 hexadecimal digits")
        return self.root / FOLDERS[kind] / f"{id}.safetensors"

    def ids(self) -> set[str]:
        names = (entry.name for folder in set(FOLDERS.values()) for entry in _entries(self.root / folder))
        stems = (name.removesuffix(".safetensors") for name in names if name.endswith(".safetensors"))
        return {stem for stem in stems if _ID.match(stem)}

    def write(self, item: Item, arrays: Arrays) -> None:
        tensors = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
        header = {
            "kind": item.kind,
            "spec": item.spec,
            "block": item.block.fingerprint if item.block else "",
            "needs": [need.id for need in item.needs],
            "label": item.label,
            "checksum": checksum(tensors),
        }
        # One entry only: safetensors writes several in an order that changes from run to run.
        write_atomically(self.path(item.kind, item.id), save(tensors, {"item": canonical(header)}))
        self.failure_path(item.id).unlink(missing_ok=True)
        self.checkpoint_path(item).unlink(missing_ok=True)

    def read(self, item: Item) -> dict[str, NDArray[Any]]:
        return self.read_file(self.path(item.kind, item.id))[1]

    def read_file(self, path: Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """The header and the arrays of an item; StoreError says what is wrong with the file."""
        content = _bytes(path)
        header = _header(path, content)
        try:
            arrays = load(content)
        except (SafetensorError, ValueError, KeyError) as error:
            raise StoreError(f"{path} is corrupt ({error})") from error
        if checksum(arrays) != header["checksum"]:
            raise StoreError(f"{path} is corrupt: its arrays do not match the checksum in its header")
        expected = item_id(header["kind"], header["spec"], header["block"], header["needs"])
        if expected != path.stem or FOLDERS.get(header["kind"]) != path.parent.name:
            raise StoreError(f"{path} is foreign: its header describes another item than its name")
        return header, arrays

    def files(self, *kinds: str) -> Iterator[Path]:
        for folder in dict.fromkeys(FOLDERS[kind] for kind in kinds or FOLDERS):
            names = (entry.name for entry in _entries(self.root / folder))
            yield from (self.root / folder / name for name in sorted(names) if name.endswith(".safetensors"))

    def checkpoint_path(self, item: Item) -> Path:
        """Where the training of an item keeps its checkpoint; deleted when the item is written."""
        return self.root / "models" / f"{item.id}.checkpoint"

    def quarantine(self, path: Path) -> Path:
        """Move a file that cannot be trusted to where nothing reads it."""
        folder = self.root / "quarantine"
        folder.mkdir(exist_ok=True)
        target = folder / f"{path.name}.{time.time_ns()}"
        path.rename(target)
        return target

    def clean(self) -> list[str]:
        """Move whatever is not a complete item of this directory to quarantine; returns what and why."""
        done, complaints = self.ids(), []
        for folder in sorted(set(FOLDERS.values())):
            for entry in sorted(_entries(self.root / folder), key=lambda entry: entry.name):
                path = Path(entry.path)
                if path.name.startswith("."):  # left by a writer that died: it was never part of the store
                    path.unlink()
                    continue
                if folder == "models" and path.suffix == ".checkpoint" and _ID.match(path.stem):
                    if path.stem in done:
                        path.unlink()
                    continue
                try:
                    if path.suffix != ".safetensors" or not _ID.match(path.stem):
                        raise StoreError(f"{path} is foreign: items are named by 32 hexadecimal digits")
                    self.read_file(path)
                except StoreError as error:
                    complaints.append(f"{error}; moved to {self.quarantine(path)}")
        return complaints

    # ── failures, plan and manifest ──────────────────────────────────────────────────────────────────────────────────

    def failure_path(self, id: str) -> Path:
        return self.root / "failed" / f"{id}.json"

    def write_failure(self, item: Item, traceback: str) -> None:
        content = {"kind": item.kind, "label": dict(item.label), "traceback": traceback}
        write_atomically(self.failure_path(item.id), json.dumps(content, indent=1).encode())

    def failures(self) -> dict[str, dict[str, Any]]:
        return {Path(e.path).stem: json.loads(Path(e.path).read_text()) for e in _entries(self.root / "failed")}

    def forget_failures(self, known: Collection[str]) -> None:
        """Delete the failures of items that are not `known`: what they were about has changed or was removed."""
        for id, failure in self.failures().items():
            if id not in known and failure["kind"] != "audit":
                self.failure_path(id).unlink(missing_ok=True)

    @property
    def plan_path(self) -> Path:
        return self.root / "plan.toml"

    def manifest(self) -> dict[str, Any]:
        """{} for a directory without one; a directory of another format is refused by name."""
        if (self.root / "provenance.json").exists() or (self.root / "trials").is_dir():
            raise StoreError(f"{self.root} is a run directory of the old format 1: run its plan into a new directory")
        path = self.root / "manifest.json"
        try:
            content = json.loads(path.read_text()) if path.exists() else {}
        except (ValueError, OSError) as error:
            raise StoreError(f"{path} is not a valid manifest ({error})") from error
        if not isinstance(content, dict):
            raise StoreError(f"{path} is not a valid manifest (it holds a {type(content).__name__})")
        if content and content.get("format") != FORMAT:
            raise StoreError(
                f"{self.root} has format {content.get('format')}, this version reads {FORMAT}: use a new directory"
            )
        return content

    def check_for_plan(self) -> None:
        """The items of a plan go into a new directory or into that of a plan, not into a saved comparison."""
        if self.manifest().get("kind", "plan") != "plan":
            raise StoreError(f"{self.root} holds a saved comparison: choose another directory for a plan")

    def write_manifest(self, content: Mapping[str, Any]) -> None:
        text = json.dumps({"format": FORMAT, **content}, indent=1, sort_keys=True)
        write_atomically(self.root / "manifest.json", text.encode())

    # ── one writer at a time ─────────────────────────────────────────────────────────────────────────────────────────

    @contextmanager
    def locked(self) -> Iterator[None]:
        self.root.mkdir(parents=True, exist_ok=True)
        lock = FileLock(self.root / "lock")
        try:
            lock.acquire(timeout=0)
        except Timeout:
            raise StoreError(f"{self.root} is in use by another run: wait for it or stop it") from None
        try:
            yield
        finally:
            lock.release()


def merge(sources: Sequence[RunDirectory], into: RunDirectory, dry_run: bool = False) -> int:
    """Copy the items that `into` lacks, and their durations; returns how many."""
    with nullcontext() if dry_run else into.locked():
        into.check_for_plan()
        copied, stored, manifest = 0, into.ids(), into.manifest()
        for source in sources:
            theirs = source.manifest()
            if theirs.get("kind") != "plan":
                raise StoreError(f"{source.root} is not a run directory of a plan: only those can be merged")
            for path in source.files():
                if path.stem in stored:
                    continue
                source.read_file(path)  # a corrupt item is an error here
                stored.add(path.stem)
                copied += 1
                if not dry_run:
                    write_atomically(into.root / path.parent.name / path.name, path.read_bytes())
            if not dry_run and not into.plan_path.exists() and source.plan_path.exists():
                write_atomically(into.plan_path, source.plan_path.read_bytes())
            durations = {**manifest.get("durations", {}), **theirs.get("durations", {})}
            manifest = {**theirs, **manifest, "durations": durations}
        if not dry_run:
            into.write_manifest(manifest)
    return copied


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
    """The item in the metadata of a safetensors file, checked before its lengths are trusted."""
    if len(content) < 8 or (length := struct.unpack("<Q", content[:8])[0]) > min(_LARGEST_HEADER, len(content) - 8):
        raise StoreError(f"{path} is not a valid item: its header is truncated or claims to be larger than the file")
    try:
        item = json.loads(json.loads(content[8 : 8 + length])["__metadata__"]["item"])
        return {key: item[key] for key in ("kind", "spec", "block", "needs", "label", "checksum")}
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{path} is not a valid item: its header does not describe one") from error


def checksum(arrays: Arrays) -> str:
    digest = hashlib.sha256()
    for name in sorted(arrays):
        digest.update(f"{name} {arrays[name].dtype} {arrays[name].shape}".encode())
        digest.update(np.ascontiguousarray(arrays[name]).tobytes())
    return digest.hexdigest()
