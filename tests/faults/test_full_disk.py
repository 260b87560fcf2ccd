"""A disk that is full: an error with the cure, nothing half written, and the same bytes once there is room."""

import os
import subprocess
from unittest import mock

import pytest

from commands import contents, flat, invoke, stamps

WORDS = ("run", "plan.toml", "--jobs", 1, "--store")


def failing_after(count):
    """Let that many files be written, then no more."""
    written, fsync = 0, os.fsync

    def limited(handle):
        nonlocal written
        written += 1
        if written > count:
            raise OSError(28, "No space left on device")
        fsync(handle)

    return mock.patch("roadworthy.core.files.os.fsync", limited)


@pytest.mark.parametrize("count", [0, 1, 2, 5, 9])
def test_whichever_file_no_longer_fits_the_run_says_so_and_resumes(folder, count):
    with failing_after(count):
        result = invoke(folder, *WORDS, "full", code=1)
    error = flat(result.stderr)
    assert "StoreError" in error
    assert "No space left on device" in error
    assert "free some space" in error
    assert "run again to resume" in error
    before = stamps(folder / "full")
    assert [path.name for path in (folder / "full").rglob(".*")] == []  # no half of a file
    invoke(folder, *WORDS, "full")
    assert contents(folder / "full") == contents(folder / "run")
    assert {path: stamp for path, stamp in stamps(folder / "full").items() if path in before} == before


@pytest.fixture
def small_disk(tmp_path):
    """A file system of seven pages."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=28k", "none", place], capture_output=True)
    if mounted.returncode:
        pytest.skip("mounting a small file system needs more rights")
    yield place
    subprocess.run(["umount", place], check=True)


def test_on_a_real_full_disk_a_run_resumes_once_there_is_room(folder, small_disk):
    store = small_disk / "store"
    result = invoke(folder, *WORDS, store, code=1)
    assert "No space left on device" in flat(result.stderr)
    items = len(stamps(store))
    assert items < len(contents(folder / "run"))
    subprocess.run(["mount", "-o", "remount,size=10m", small_disk], check=True)
    invoke(folder, *WORDS, store)
    assert contents(store) == contents(folder / "run")


def test_a_report_that_does_not_fit_leaves_the_old_one(folder):
    (folder / "page.html").write_text("old")
    with failing_after(0):
        result = invoke(folder, "report", "run", "-o", "page.html", code=1)
    assert "free some space" in flat(result.stderr)
    assert (folder / "page.html").read_text() == "old"
    assert [path.name for path in folder.iterdir() if path.name.startswith(".")] == []
