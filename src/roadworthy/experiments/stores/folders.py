"""Where the items of a run directory lie: maps/AB/ID.safetensors, with the first two digits of the id as subfolder.

So no folder holds more than a 256th of the files. Format 2 had no subfolders: its files are found, too.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from roadworthy.core.errors import StoreError
from roadworthy.core.files import unwritable

FOLDERS: Mapping[str, str] = {
    "baseline": "predictions",
    "predictions": "predictions",
    "maps": "maps",
    "imputer": "models",
    "model": "models",
    "audit": "audits",
}
"""Each kind of item, and the folder of its files."""

ID = re.compile(r"[0-9a-f]{32}\Z")
_SHARD = re.compile(r"[0-9a-f]{2}\Z")


def item_path(root: Path, kind: str, id: str) -> Path:
    if not ID.match(id):
        raise StoreError(f"{id!r} is not an item's id: expected 32 hexadecimal digits")
    return root / FOLDERS[kind] / id[:2] / f"{id}.safetensors"


def stored_path(root: Path, kind: str, id: str) -> Path:
    path = item_path(root, kind, id)
    _check_real(path.parent)
    flat = path.parent.parent / path.name
    return flat if not os.path.lexists(path) and os.path.lexists(flat) else path


def shards(folder: Path) -> list[Path]:
    """The subfolders of a folder of items, in order."""
    names = sorted(entry.name for entry in all_entries(folder) if _SHARD.match(entry.name))
    for name in names:
        _check_real(folder / name)
    return [folder / name for name in names if (folder / name).is_dir()]


def _check_real(folder: Path) -> None:
    """A directory from elsewhere could lead a run to write, or a reader to read, outside."""
    if folder.is_symlink():
        raise StoreError(f"{folder} is a symbolic link: a run directory holds real folders; put one in its place")


def item_entries(folder: Path) -> Iterator[tuple[Path, os.DirEntry[str]]]:
    """The files of a folder and of its subfolders, each with where it lies."""
    for place in (folder, *shards(folder)):
        yield from ((place, entry) for entry in entries(place))


def flat_items(root: Path) -> list[Path]:
    """Items where format 2 had them."""
    names = sorted(set(FOLDERS.values()))
    found = [root / name / entry.name for name in names for entry in entries(root / name)]
    return [path for path in found if path.suffix == ".safetensors" and ID.match(path.stem)]


def move_into_subfolders(paths: Iterable[Path]) -> None:
    """Each move is a rename: interrupted between two of them, all items are found."""
    for path in paths:
        target = path.parent / path.name[:2] / path.name
        _check_real(target.parent)
        try:
            target.parent.mkdir(exist_ok=True)
            path.unlink() if os.path.lexists(target) else path.rename(target)  # what is there already is what is read
        except OSError as error:
            raise StoreError(f"{path} should be moved, but {unwritable(target, error)}") from error


def entries(folder: Path) -> list[os.DirEntry[str]]:
    """The regular files of a folder."""
    return [entry for entry in all_entries(folder) if entry.is_file(follow_symlinks=False)]


def all_entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            return list(found)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StoreError(f"{folder} could not be read ({error.strerror}): a run directory holds folders") from error
