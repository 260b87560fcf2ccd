"""Bad inputs: each is refused by name, with the cure, before anything is written."""

import importlib
from collections import Counter
from pathlib import Path

import pytest

from faults.table import check

MODULES = sorted(path.stem for path in Path(__file__).parent.glob("rows_*.py"))
ROWS = [row for name in MODULES for row in importlib.import_module(f"faults.{name}").ROWS]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # files that urllib or numpy leave open
@pytest.mark.timeout(60)  # a hang is a fault too
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_bad_input_is_refused_by_name_and_writes_nothing(row, request, monkeypatch):
    # Most rows change nothing, which is checked: they share a copy.
    folder = request.getfixturevalue("folder" if row.prepares else "untouched")
    monkeypatch.setenv("ROADWORTHY_SCRATCH", str(folder.parent / "scratch"))
    check(row, folder)


def test_every_row_has_a_name_of_its_own():
    assert [name for name, count in Counter(row.name for row in ROWS).items() if count > 1] == []
