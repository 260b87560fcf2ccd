"""The manifest of a run directory, checked where it is read: everything after trusts it."""

import json
from pathlib import Path
from typing import Any

from roadworthy.core.errors import StoreError
from roadworthy.core.files import read_regular

FORMAT = 3
"""Of the directory; written to its manifest."""
READABLE = (2, FORMAT)
"""Others are refused. Format 2 had no subfolders."""

_TYPES: dict[str, type | tuple[type, ...]] = {
    "about": dict,
    "classes": list,
    "cpu_seconds": dict,
    "date": str,
    "durations": dict,
    "fingerprints": dict,
    "folder": str,
    "kind": str,
    "machine": dict,
    "results": dict,
    "unlabeled": bool,
    "versions": dict,
}
"""What each key holds; further keys are kept as they are."""

TIMES = ("durations", "cpu_seconds")
"""What each item took, by its id: by the clock, and in processor time."""

_LARGEST = 1 << 28


def checked_manifest(path: Path) -> dict[str, Any]:
    """{} where there is none. Its format is not checked: that of another version may differ in everything."""
    try:
        content = json.loads(read_regular(path, _LARGEST))
    except FileNotFoundError:
        return {}
    except (ValueError, OSError, RecursionError) as error:
        raise _invalid(path, getattr(error, "strerror", None) or str(error)) from error
    if not isinstance(content, dict):
        raise _invalid(path, f"it holds a {type(content).__name__}")
    if content.get("format") in READABLE:
        _check(path, content)
    elif not isinstance(content.get("format"), int):
        raise _invalid(path, f"its format is {content.get('format')!r}")
    return content


def _check(path: Path, content: dict[str, Any]) -> None:
    for key, kind in _TYPES.items():
        if key in content and not isinstance(content[key], kind):
            raise _invalid(path, f"{key} is a {type(content[key]).__name__}")
    for id, seconds in (entry for name in TIMES for entry in content.get(name, {}).items()):
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds < float("inf"):
            raise _invalid(path, f"the duration of {id} is {seconds!r}")


def _invalid(path: Path, reason: str) -> StoreError:
    return StoreError(f"{path} is not a valid manifest ({reason}): run the plan again to write a new one")
