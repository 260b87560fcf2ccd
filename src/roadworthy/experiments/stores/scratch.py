"""A store that lives as long as its comparison: maps in temporary files, everything else in memory."""

import shutil
import weakref
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np

from roadworthy.experiments.items import Arrays, Item


class ScratchStore:
    def __init__(self) -> None:
        self._folder = Path(mkdtemp(prefix="roadworthy-"))
        weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self._arrays: dict[str, dict[str, Any]] = {}
        self._manifest: dict[str, Any] = {}

    def ids(self) -> set[str]:
        return set(self._arrays)

    def read(self, item: Item) -> Arrays:
        return {name: np.array(array) for name, array in self._arrays[item.id].items()}

    def write(self, item: Item, arrays: Arrays) -> None:
        self._arrays[item.id] = {
            name: self._on_disk(f"{item.id}.{name}.npy", array) if name == "maps" else array
            for name, array in arrays.items()
        }

    def _on_disk(self, name: str, array: Any) -> Any:
        """Memory stays constant, however many images there are."""
        np.save(self._folder / name, array)
        return np.load(self._folder / name, mmap_mode="r")

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
