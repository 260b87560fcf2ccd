"""A store that lives as long as its comparison: maps in temporary files, everything else in memory."""

import atexit
import logging
import os
import shutil
import tempfile
import weakref
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock, Timeout

from roadworthy.core.errors import StoreError
from roadworthy.core.files import unwritable
from roadworthy.experiments.items import Arrays, Item

log = logging.getLogger("roadworthy")

VARIABLE = "ROADWORTHY_SCRATCH"
"""The environment variable that names the folder for temporary files."""

LARGE = 1 << 30
"""Bytes from which on the space is announced."""

_PREFIX = "roadworthy-scratch-"


class ScratchStore:
    def __init__(self) -> None:
        self._folder = _new_folder()
        weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self._arrays: dict[str, dict[str, Any]] = {}
        self._manifest: dict[str, Any] = {}

    def expect(self, size: int) -> None:
        """Before long work: is there room for maps of `size` bytes? Much of it is announced."""
        free, place = shutil.disk_usage(self._folder).free, self._folder.parent.parent
        if size > free:
            raise StoreError(
                f"the maps need about {size / 1e9:.1f} GB, but {place} has {free / 1e9:.1f} GB left: "
                f"free some space, or name another folder with the environment variable {VARIABLE}"
            )
        if size >= LARGE:
            log.warning("maps of about %.1f GB are kept in %s; %s places them", size / 1e9, place, VARIABLE)

    def ids(self) -> set[str]:
        return set(self._arrays)

    def read(self, item: Item) -> Arrays:
        arrays = self._arrays[item.id]
        return {name: np.load(a) if isinstance(a, Path) else np.array(a) for name, a in arrays.items()}

    def write(self, item: Item, arrays: Arrays) -> None:
        self._arrays[item.id] = {
            name: self._on_disk(f"{item.id}.{name}.npy", array) if name == "maps" else array
            for name, array in arrays.items()
        }

    def _on_disk(self, name: str, array: Any) -> Path:
        """Memory stays constant, however many images there are. No file stays open: a memory map would keep one."""
        path = self._folder / name
        try:
            np.save(path, array)
        except OSError as error:
            cure = f"or name another folder with the environment variable {VARIABLE}"
            raise StoreError(f"{unwritable(path, error)}, {cure}") from error
        return path

    def write_failure(self, item: Item, traceback: str) -> None:
        raise NotImplementedError("failures in memory are raised, not recorded")

    def checkpoint_path(self, item: Item) -> Path | None:
        return None

    def locked(self) -> AbstractContextManager[None]:
        return nullcontext()

    def manifest(self) -> dict[str, Any]:
        return self._manifest

    def write_manifest(self, content: Mapping[str, Any]) -> None:
        self._manifest = dict(content)


# ── one folder per process, locked while the process lives ───────────────────────────────────────────────────────────


class _Folder:
    """Where this process keeps its scratch stores, with a lock that shows others that it is alive."""

    def __init__(self, place: Path):
        self.process, self.root = os.getpid(), Path(tempfile.mkdtemp(prefix=_PREFIX, dir=place))
        self.lock = FileLock(self.root / "lock", thread_local=False)  # of the process, not of the thread
        self.lock.acquire(timeout=0)

    @property
    def usable(self) -> bool:
        return self.process == os.getpid() and self.root.is_dir()

    def remove(self) -> None:
        if self.process == os.getpid():  # not by a fork of it
            self.lock.release()
            shutil.rmtree(self.root, ignore_errors=True)


_folders: dict[Path, _Folder] = {}
"""Of this process, by the folder they lie in."""


def _new_folder() -> Path:
    """A new folder of this process; those of processes that were killed are removed first."""
    place = Path(os.environ.get(VARIABLE) or tempfile.gettempdir()).expanduser().absolute()
    try:
        place.mkdir(parents=True, exist_ok=True)
        _remove_dead(place)
        if place not in _folders or not _folders[place].usable:
            _folders[place] = _Folder(place)
            atexit.register(_folders[place].remove)
        return Path(tempfile.mkdtemp(dir=_folders[place].root))
    except OSError as error:
        raise StoreError(f"no room for maps: {unwritable(place, error)} ({VARIABLE} names the folder)") from error


def _remove_dead(place: Path) -> None:
    """The lock of a process ends with it: a process that gets it may remove the folder."""
    ours = {folder.root for folder in _folders.values() if folder.usable}
    for folder in place.glob(f"{_PREFIX}*"):
        if folder in ours or folder.is_symlink() or not (folder / "lock").is_file():
            continue  # one without a lock is being made
        lock = FileLock(folder / "lock")
        try:
            lock.acquire(timeout=0)
        except (Timeout, OSError):  # alive, or another user's
            continue
        shutil.rmtree(folder, ignore_errors=True)
        lock.release()
