"""A folder of image files: one subfolder per class, or a flat folder of unlabeled images."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import final

import torch

from roadworthy.core.errors import DataError, InputError
from roadworthy.core.types import UNLABELED, Batch, Ids
from roadworthy.datasets.image_files import SUFFIXES, Frame, image_batches, images_at


@final
@dataclass(frozen=True)
class ImageFolder:
    """Image files `root/CLASS/*` in sorted order, as RGB; ids are positions in that order.

    `classes` are the sorted subfolders, or those given, in the given order. The shorter side is resized to `resize`,
    then a square of side `crop` is cut from the center. Symbolic links must not lead out of `root`.
    """

    root: Path | str
    resize: int | None = None
    crop: int | None = None
    classes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.root, str | Path) or not str(self.root) or "\0" in str(self.root):
            raise InputError(f"root={self.root!r}: give the folder of the images, such as 'images'")
        if not os.path.isdir(self._folder):
            raise DataError(f"{self._folder} is not a folder: give the folder of the images or of their class folders")
        object.__setattr__(self, "classes", _checked(self.classes) or tuple(_subfolders(self._folder)))
        _ = self._frame, self._entries  # fail now, not in the middle of a run

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
        return Frame(self.resize, self.crop)

    @property
    def _folder(self) -> Path:
        return Path(self.root).expanduser()

    @cached_property
    def _entries(self) -> list[tuple[Path, int]]:
        groups = [(self._folder / name, label) for label, name in enumerate(self.classes)]
        return [
            (path, label)
            for folder, label in groups or [(self._folder, UNLABELED)]
            for path in _image_files(folder, self._folder)
        ]


def _checked(classes: object) -> tuple[str, ...]:
    if not isinstance(classes, tuple | list) or not all(isinstance(name, str) and name for name in classes):
        raise InputError(f"classes={classes!r}: give the names of subfolders, as in ('cat', 'dog')")
    if repeated := next((name for name in classes if classes.count(name) > 1), None):
        raise InputError(f"classes: {repeated!r} is given twice: each class is one label; remove one of the two")
    return tuple(classes)


def _subfolders(root: Path) -> list[str]:
    """Sorted names of the class folders, without hidden ones."""
    entries = _entries(root)
    names = [path.name for path in entries if path.is_dir() and not path.name.startswith(".")]
    stray = next((path for path in entries if _is_image(path)), None)
    if names and stray:
        raise DataError(f"{stray} is outside the class folders ({names[0]}, …): move it into one, or give classes=")
    return names


def _image_files(folder: Path, root: Path) -> list[Path]:
    _check_inside(folder, root)
    if not folder.is_dir():
        raise DataError(f"{folder} is missing: classes= must name subfolders of {root}")
    paths = [path for path in _entries(folder) if _is_image(path)]
    if not paths:
        raise DataError(f"{folder} contains no images ({', '.join(SUFFIXES)}): add some, or leave it out of classes=")
    for path in paths:
        if path.is_symlink():
            _check_inside(path, root)
    return paths


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError as error:
        raise DataError(f"{folder} cannot be read ({error.strerror}): check its permissions") from error


def _is_image(path: Path) -> bool:
    return path.suffix.lower() in SUFFIXES and not path.name.startswith(".") and not path.is_dir()


def _check_inside(path: Path, root: Path) -> None:
    """Raise if a link or '..' leads out of `root`."""
    try:
        target, inside = path.resolve(), root.resolve()
    except (OSError, RuntimeError, ValueError) as error:  # RuntimeError: a link to itself, before Python 3.13
        raise DataError(f"{path} leads nowhere ({error}): remove it, or copy the images into the folder") from error
    if not target.is_relative_to(inside):
        raise DataError(f"{path} leads out of {root}, to {target}: copy the images into the folder")
