"""Where items are kept: in memory and temporary files, or in a run directory. Both answer the same questions."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from roadworthy.experiments.items import Arrays, Item


class Store(Protocol):
    def ids(self) -> set[str]:
        """The ids of all items that are stored."""

    def read(self, item: Item) -> Arrays: ...

    def write(self, item: Item, arrays: Arrays) -> None: ...

    def write_failure(self, item: Item, traceback: str) -> None: ...

    def checkpoint_path(self, item: Item) -> Path | None:
        """Where the training of an item keeps its checkpoint; None where nothing outlives the process."""

    def manifest(self) -> dict[str, Any]: ...

    def write_manifest(self, content: Mapping[str, Any]) -> None: ...

    def locked(self) -> AbstractContextManager[None]:
        """For writing: one run at a time."""
