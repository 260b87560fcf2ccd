"""One directory of results: a file per item, written completely or not at all.

    plan.toml  manifest.json  {maps,predictions,models,audits}/AB/ID.safetensors  models/ID.checkpoint  failed/ID.json
    quarantine/  lock

AB are the first two digits of the ID. Format 2 had no such subfolders: it is read as it is, and the next run moves
its files. The item's JSON is in the file's header, with a checksum of the arrays. A corrupt or foreign file is named,
moved to quarantine and computed again; hidden files that are not ours are left alone. The folders are real ones: a
symbolic link could lead a run to write elsewhere. One run at a time writes. The lock is the operating system's, so it
ends with the process that holds it; on a network file system whose locks do not reach other machines, start one run
at a time yourself.
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

from roadworthy.core.errors import OutputError, StoreError
from roadworthy.core.files import read_regular, unwritable, write_atomically
from roadworthy.experiments.items import Arrays, Item, canonical, item_id
from roadworthy.experiments.stores.folders import (
    FOLDERS,
    ID,
    all_entries,
    entries,
    flat_items,
    item_entries,
    item_path,
    move_into_subfolders,
    shards,
    stored_path,
)
from roadworthy.experiments.stores.manifests import FORMAT, READABLE, TIMES, checked_manifest

_TEMPORARY = re.compile(r"\.([0-9a-f]{32}\.(safetensors|checkpoint|json)|manifest\.json|plan\.toml)\.[a-z0-9_]{8}\Z")
"""What `write_atomically` leaves if it is killed."""
_SUBFOLDERS = (*dict.fromkeys(FOLDERS.values()), "failed", "quarantine", "audit")
_LARGEST_HEADER = 4 << 20
_HEADER = {"kind": str, "spec": dict, "block": str, "needs": list, "label": dict, "checksum": str}
"""What the header of an item holds."""


@final
@dataclass(frozen=True)
class RunDirectory:
    root: Path

    def path(self, kind: str, id: str) -> Path:
        """Where an item is written."""
        return item_path(self.root, kind, id)

    def stored_path(self, kind: str, id: str) -> Path:
        """Where an item is read: there, or where format 2 had it."""
        return stored_path(self.root, kind, id)

    def ids(self) -> set[str]:
        names = (entry.name for name in set(FOLDERS.values()) for _, entry in item_entries(self.root / name))
        stems = (name.removesuffix(".safetensors") for name in names if name.endswith(".safetensors"))
        return {stem for stem in stems if ID.match(stem)}

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
        self._write(self.path(item.kind, item.id), save(tensors, {"item": canonical(header)}))
        self.failure_path(item.id).unlink(missing_ok=True)
        self.checkpoint_path(item).unlink(missing_ok=True)

    def _write(self, path: Path, content: bytes) -> None:
        """Nothing is lost by a write that fails: what is stored stays, and the next run resumes."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.is_symlink():
                path.unlink()  # not followed: it could lead out of the directory
            write_atomically(path, content)
        except OutputError as error:
            raise StoreError(f"{error}. Finished items are kept: run again to resume") from error
        except OSError as error:
            raise StoreError(f"{unwritable(path, error)}. Finished items are kept: run again to resume") from error

    def read(self, item: Item) -> dict[str, NDArray[Any]]:
        return self.read_file(self.stored_path(item.kind, item.id))[1]

    def read_file(self, path: Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """The header and the arrays of an item; StoreError says what is wrong with the file."""
        content = _bytes(path)
        header = _header(path, content)
        try:
            arrays = load(content)
        except (SafetensorError, ValueError, KeyError, TypeError, OverflowError) as error:
            raise StoreError(f"{path} is corrupt ({error})") from error
        if checksum(arrays) != header["checksum"]:
            raise StoreError(f"{path} is corrupt: its arrays do not match the checksum in its header")
        expected = item_id(header["kind"], header["spec"], header["block"], header["needs"])
        folder = path.parent.parent if path.parent.name == path.stem[:2] else path.parent
        if expected != path.stem or FOLDERS.get(header["kind"]) != folder.name:
            raise StoreError(f"{path} is foreign: its header describes another item than its name")
        return header, arrays

    def files(self, *kinds: str) -> Iterator[Path]:
        for folder in dict.fromkeys(FOLDERS[kind] for kind in kinds or FOLDERS):
            paths = {entry.name: place / entry.name for place, entry in item_entries(self.root / folder)}
            yield from (paths[name] for name in sorted(paths) if name.endswith(".safetensors"))

    def checkpoint_path(self, item: Item) -> Path:
        """Where the training of an item keeps its checkpoint; deleted when the item is written."""
        return self.root / "models" / f"{item.id}.checkpoint"

    def quarantine(self, path: Path) -> Path:
        """Move a file that cannot be trusted to where nothing reads it."""
        target = self.root / "quarantine" / f"{path.name}.{time.time_ns()}"
        try:
            target.parent.mkdir(exist_ok=True)
            path.rename(target)
        except OSError as error:
            raise StoreError(f"{path} should be moved, but {unwritable(target, error)}") from error
        return target

    def clean(self) -> list[str]:
        """Move whatever is not a complete item of this directory to quarantine; returns what and why."""
        self._move_into_subfolders()
        done, complaints = self.ids(), []
        kinds = [self.root / name for name in sorted(set(FOLDERS.values()))]
        inner = [shard for folder in kinds for shard in shards(folder)]
        for folder in (self.root, *kinds, *inner, self.root / "failed"):
            for path in sorted({folder / entry.name for entry in all_entries(folder)}.difference(inner)):
                if _TEMPORARY.match(path.name):  # left by a writer that was killed: it was never part of the store
                    path.unlink()
                elif folder == self.root / "models" and path.suffix == ".checkpoint" and ID.match(path.stem):
                    if path.stem in done:
                        path.unlink()
                elif problem := self._problem(folder, path):
                    complaints.append(f"{problem}; moved to {self.quarantine(path)}")
        return complaints

    def _move_into_subfolders(self) -> None:
        """Of a directory of format 2; the manifest names the new format first."""
        if flat := flat_items(self.root):
            if not self._manifest_problem() and (content := self.manifest()):
                self.write_manifest(content)
            move_into_subfolders(flat)

    def _problem(self, folder: Path, path: Path) -> str:
        """What is wrong with a file of this directory, or "". Foreign hidden files, such as .nfs, are nobody's item."""
        try:
            if path.name.startswith("."):
                return ""
            if folder == self.root:
                return self._manifest_problem() if path.name == "manifest.json" else ""
            if folder == self.root / "failed":
                _failure(path)
            elif path.suffix != ".safetensors" or not ID.match(path.stem) or not path.is_file():
                raise StoreError(f"{path} is foreign: items are files named by 32 hexadecimal digits")
            elif path.is_symlink():
                raise StoreError(f"{path} is a symbolic link: items are files")
            else:
                self.read_file(path)
        except StoreError as error:
            return str(error)
        return ""

    def _manifest_problem(self) -> str:
        """Of a broken manifest, which the next run writes again; one of another version is refused elsewhere."""
        try:
            checked_manifest(self.root / "manifest.json")
        except StoreError as error:
            return str(error)
        return ""

    # ── failures, plan and manifest ──────────────────────────────────────────────────────────────────────────────────

    def failure_path(self, id: str) -> Path:
        return self.root / "failed" / f"{id}.json"

    def write_failure(self, item: Item, traceback: str) -> None:
        content = {"kind": item.kind, "label": dict(item.label), "traceback": traceback}
        self._write(self.failure_path(item.id), json.dumps(content, indent=1).encode())

    def failures(self) -> dict[str, dict[str, Any]]:
        """By item; files that hold none are left out here, and moved to quarantine by the next run."""
        found = {}
        for entry in entries(self.root / "failed"):
            try:
                found[Path(entry.path).stem] = _failure(Path(entry.path))
            except StoreError:
                continue
        return found

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
        self._check_folders()
        if (self.root / "provenance.json").exists() or (self.root / "trials").is_dir():
            raise StoreError(f"{self.root} is a run directory of the old format 1: run its plan into a new directory")
        content = checked_manifest(self.root / "manifest.json")
        if content and content.get("format") not in READABLE:
            raise StoreError(
                f"{self.root} has format {content.get('format')}, this version reads "
                f"{' and '.join(map(str, READABLE))}: "
                "use a new directory, or the version of Roadworthy that made it"
            )
        return content

    def _check_folders(self) -> None:
        """Links are refused: a directory from elsewhere could lead a run to write, or a reader to read, outside."""
        try:
            self.root.lstat()
        except FileNotFoundError:
            return
        except (OSError, ValueError) as error:
            raise StoreError(f"{unwritable(self.root, error)}; choose another run directory") from error
        if not self.root.is_dir():
            raise StoreError(f"{self.root} is not a folder: choose another run directory")
        for name in _SUBFOLDERS:
            path = self.root / name
            if path.is_symlink():
                raise StoreError(f"{path} is a symbolic link: a run directory holds real folders; put one in its place")
            if os.path.lexists(path) and not path.is_dir():
                raise StoreError(f"{path} is not a folder: move it away, it is in the place of one")

    def check_for_plan(self) -> None:
        """The items of a plan go into a new directory or into that of a plan, not into a saved comparison.

        A broken manifest is no obstacle: the run moves it to quarantine and writes a new one.
        """
        if not self._manifest_problem() and self.manifest().get("kind", "plan") != "plan":
            raise StoreError(f"{self.root} holds a saved comparison: choose another directory for a plan")
        self._check_folders()

    def write_manifest(self, content: Mapping[str, Any]) -> None:
        text = json.dumps({**content, "format": FORMAT}, indent=1, sort_keys=True)
        self._write(self.root / "manifest.json", text.encode())

    def write_plan(self, text: bytes) -> None:
        self._write(self.plan_path, text)

    # ── one writer at a time ─────────────────────────────────────────────────────────────────────────────────────────

    @contextmanager
    def locked(self) -> Iterator[None]:
        self._check_folders()
        lock = FileLock(self.root / "lock")
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            lock.acquire(timeout=0)
        except Timeout:
            raise StoreError(f"{self.root} is in use by another run: wait for it or stop it") from None
        except (OSError, NotImplementedError) as error:
            cure = unwritable(self.root / "lock", OSError(*error.args))
            raise StoreError(f"{self.root} cannot be locked: {cure}") from error
        try:
            yield
        finally:
            lock.release()


def merge(sources: Sequence[RunDirectory], into: RunDirectory, dry_run: bool = False) -> int:
    """Copy the items that `into` lacks, and their durations; returns how many."""
    for source in sources:
        if source.manifest().get("kind") != "plan":
            raise StoreError(f"{source.root} is not a run directory of a plan: only those can be merged")
    with nullcontext() if dry_run else into.locked():
        into.check_for_plan()
        copied, stored, manifest = 0, into.ids(), into.manifest()
        for source in sources:
            theirs = source.manifest()
            for path in source.files():
                if path.stem in stored:
                    continue
                header, _ = source.read_file(path)  # a corrupt item is an error here
                stored.add(path.stem)
                copied += 1
                if not dry_run:
                    into._write(into.path(header["kind"], path.stem), _bytes(path))
            if not dry_run and not into.plan_path.exists() and source.plan_path.exists():
                into.write_plan(_bytes(source.plan_path))
            times = {name: {**manifest.get(name, {}), **theirs.get(name, {})} for name in TIMES}
            manifest = {**theirs, **manifest, **times}
        if not dry_run:
            into.write_manifest(manifest)
    return copied


def _bytes(path: Path) -> bytes:
    try:
        return read_regular(path)
    except OSError as error:
        raise StoreError(f"{path} could not be read ({error.strerror}): restore it, or run its plan again") from error


def _failure(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(_bytes(path))
        if ID.match(path.stem) and path.suffix == ".json" and not path.is_symlink():
            return {"kind": str(content["kind"]), "label": dict(content["label"]), "traceback": content["traceback"]}
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise StoreError(f"{path} does not describe a failed item ({error})") from error
    raise StoreError(f"{path} is foreign: failures are named by 32 hexadecimal digits")


def _header(path: Path, content: bytes) -> dict[str, Any]:
    """The item in the metadata of a safetensors file, checked before its lengths are trusted."""
    if len(content) < 8 or (length := struct.unpack("<Q", content[:8])[0]) > min(_LARGEST_HEADER, len(content) - 8):
        raise StoreError(f"{path} is not a valid item: its header is truncated or claims to be larger than the file")
    try:
        item = json.loads(json.loads(content[8 : 8 + length])["__metadata__"]["item"])
        header = {key: item[key] for key in _HEADER}
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise StoreError(f"{path} is not a valid item: its header does not describe one") from error
    for key, kind in _HEADER.items():
        if not isinstance(header[key], kind):
            raise StoreError(f"{path} is not a valid item: its {key} is a {type(header[key]).__name__}")
    return header


def checksum(arrays: Arrays) -> str:
    digest = hashlib.sha256()
    for name in sorted(arrays):
        digest.update(f"{name} {arrays[name].dtype} {arrays[name].shape}".encode())
        digest.update(np.ascontiguousarray(arrays[name]).tobytes())
    return digest.hexdigest()
