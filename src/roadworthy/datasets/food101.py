"""Food-101 in its official layout: meta/SPLIT.txt lists CLASS/ID for each images/CLASS/ID.jpg."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import final

import torch

from roadworthy.core.errors import DataError, InputError
from roadworthy.core.types import Batch, Ids
from roadworthy.datasets.image_files import Frame, image_batches, images_at


@final
@dataclass(frozen=True)
class Food101:
    """The images in `root/food-101` (or in `root` itself), resized to `size` at the shorter side and center-cropped.

    Ids are line indices in the split file. `meta/classes.txt` may list all 101 classes or a subset.
    """

    root: Path | str
    split: str = "test"
    size: int = 64

    def __post_init__(self) -> None:
        if self.split not in ("train", "test"):
            raise InputError(f"split {self.split!r}: Food-101 has 'train' and 'test'")
        _ = self._frame, self._entries  # fail now, not in the middle of a run

    @cached_property
    def classes(self) -> tuple[str, ...]:
        return tuple(_lines(self._folder / "meta" / "classes.txt"))

    @property
    def ids(self) -> Ids:
        return torch.arange(len(self))

    def __len__(self) -> int:
        return len(self._entries)

    def batches(self, size: int) -> Iterator[Batch]:
        return image_batches(self._entries, self._frame, size)

    def at(self, rows: Sequence[int]) -> Batch:
        return images_at(self._entries, self._frame, rows)

    @property
    def _frame(self) -> Frame:
        return Frame(resize=self.size, crop=self.size)

    @property
    def _folder(self) -> Path:
        root = Path(self.root).expanduser()
        return root if (root / "meta" / "classes.txt").is_file() else root / "food-101"

    @cached_property
    def _entries(self) -> list[tuple[Path, int]]:
        meta = self._folder / "meta" / f"{self.split}.txt"
        labels = {name: label for label, name in enumerate(self.classes)}
        return [_entry(line, number, meta, labels) for number, line in enumerate(_lines(meta), start=1)]


def _entry(line: str, number: int, meta: Path, labels: dict[str, int]) -> tuple[Path, int]:
    name, _, image_id = line.partition("/")
    if not (_is_component(name) and _is_component(image_id)):
        raise DataError(f"{meta}, line {number}: {line!r} is not a CLASS/ID inside the images folder; fix the file")
    if name not in labels:
        raise DataError(f"{meta}, line {number}: class {name!r} is not in classes.txt; add it there or remove the line")
    return meta.parent.parent / "images" / name / f"{image_id}.jpg", labels[name]


def _is_component(name: str) -> bool:
    """Whether `name` is a single path component on every operating system."""
    return name not in ("", ".", "..") and not set(name) & set("/\\:\0")


def _lines(path: Path) -> list[str]:
    if not path.is_file():
        root = path.parent.parent.parent
        raise DataError(f"{path} is missing: get it with `roadworthy data download food101 --root {root}`")
    lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    if not lines:
        raise DataError(f"{path} is empty: restore it from the official archive")
    return lines
