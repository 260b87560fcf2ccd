"""The table of bad inputs: one row each. Add a row to a list `ROWS` in any file `rows_*.py` of this folder.

A row states what is done, the class of the error, and a word of the cure that its message must hold. `given` prepares
the folder. Whatever is done may then write nothing: the folder is compared before and after.
"""

import contextlib
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from typer.testing import CliRunner

import roadworthy as rw
from roadworthy.cli.app import app
from roadworthy.core import errors


@dataclass(frozen=True)
class Row:
    name: str
    do: Callable[[Path], object]
    """called with the folder of a project: images/, my_model.py, plan.toml, and its finished run directory run/"""
    error: type[Exception]
    cure: str
    given: Callable[[Path], object] | None = None
    may_write: tuple[str, ...] = ()
    """names of files that the cure needs, such as a partial download that is resumed or the file of a lock"""

    @property
    def prepares(self) -> bool:
        """It needs a folder of its own."""
        return self.given is not None or bool(self.may_write)


class UsageError(Exception):
    """What the command line refuses while it parses: exit code 2."""


def each(
    argument: str, values: Iterable[Any], do: Callable[[Any], Callable[[Path], object]], error: Any, cure: str
) -> list[Row]:
    """A row per bad value of one argument."""
    return [Row(f"{argument}={_short(value)}", do(value), error, cure) for value in values]


def _short(value: Any) -> str:
    if hasattr(value, "dtype"):
        return f"{value.dtype} {tuple(value.shape)} to {np.max(np.abs(np.asarray(value, dtype=complex)), initial=0):g}"
    text = re.sub(r" at 0x\w+", "", repr(value))
    return " ".join(text.split())[:60]


def command(*words: object) -> Callable[[Path], object]:
    """Call the command line in the folder; its error is raised as what it says it is."""

    def call(folder: Path) -> str:
        with contextlib.chdir(folder):
            result = CliRunner().invoke(app, [str(word) for word in words])
        shown = " ".join(result.output.replace("│", " ").split())
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        assert "Traceback" not in result.stderr
        if result.exit_code == 2:
            raise UsageError(shown)
        if result.exit_code:
            match = re.search(r"error: (\w+): (.*)", shown)
            assert match, f"exit code {result.exit_code} without an error: {shown}"
            raise getattr(errors, match[1])(match[2])
        return shown

    return call


def snapshot(folder: Path) -> dict[str, tuple[int, int, int]]:
    """Every file and folder below, with mode, size and time; following no links."""
    found = {}
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        is_folder = path.is_dir() and not path.is_symlink()
        found[str(path.relative_to(folder))] = (
            (status.st_mode, 0, 0) if is_folder else (status.st_mode, status.st_size, status.st_mtime_ns)
        )
    return found


def check(row: Row, folder: Path) -> None:
    """Prepare, do it, and hold the row against what happens."""
    if row.given is not None:
        row.given(folder)
    before = snapshot(folder)
    try:
        result = row.do(folder)
    except Exception as error:
        raised = error
    else:
        raise AssertionError(f"no error: {row.name} gave {result!r}")
    if not isinstance(raised, rw.errors.RoadworthyError | UsageError):
        raise AssertionError(f"a foreign error: {type(raised).__name__}: {raised}") from raised
    assert type(raised) is row.error, f"{type(raised).__name__}: {raised}"
    assert re.search(row.cure, str(raised)), f"{row.cure!r} is not in: {raised}"
    after = {name: status for name, status in snapshot(folder).items() if Path(name).name not in row.may_write}
    before = {name: status for name, status in before.items() if Path(name).name not in row.may_write}
    assert after == before, f"written: {sorted(set(after.items()) ^ set(before.items()))}"
