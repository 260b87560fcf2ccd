"""One run at a time: also when its holder was killed or stopped, and when several start at once."""

import os
import signal
import subprocess
import sys
import time

import pytest

from roadworthy.core.errors import StoreError
from roadworthy.experiments.stores.run_directory import RunDirectory

HOLD = """
import sys, time
from pathlib import Path
from roadworthy.core.errors import StoreError
from roadworthy.experiments.stores.run_directory import RunDirectory
print("ready", flush=True)
while not Path(sys.argv[2]).exists():  # all start at the same moment
    pass
try:
    with RunDirectory(Path(sys.argv[1])).locked():
        print("locked", flush=True)
        time.sleep(600)
except StoreError as error:
    print(error, flush=True)
"""


def holder(store, signal_file="/"):
    words = [sys.executable, "-c", HOLD, str(store.root), str(signal_file)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.fixture
def store(tmp_path):
    return RunDirectory(tmp_path / "run")


def refused(store):
    with pytest.raises(StoreError, match="in use by another run"), store.locked():
        pass


def test_a_stopped_run_still_holds_its_lock_and_a_killed_one_does_not(store):
    with holder(store) as other:
        try:
            assert other.stdout.readline() == "locked\n"
            other.send_signal(signal.SIGSTOP)
            an_hour_ago = time.time() - 3600
            os.utime(store.root / "lock", (an_hour_ago, an_hour_ago))  # its age says nothing
            refused(store)
            other.send_signal(signal.SIGCONT)
            refused(store)
            other.kill()
            other.wait()
            with store.locked():
                pass
        finally:
            other.kill()


@pytest.mark.parametrize("clock", [-(10**6), 10**6], ids=["behind", "ahead"])
def test_clocks_and_what_the_lock_file_holds_do_not_matter(store, clock):
    store.root.mkdir()
    lock = store.root / "lock"
    lock.write_text('{"pid": 1, "host": "here", "time": 99999999999}')
    os.utime(lock, (time.time() + clock, time.time() + clock))
    with store.locked():
        refused(store)


def test_of_many_that_start_at_once_one_gets_the_lock(store, tmp_path):
    store.root.mkdir()
    (store.root / "lock").touch()  # of a run that was killed
    starters = [holder(store, tmp_path / "go") for _ in range(5)]
    try:
        (tmp_path / "go").touch()
        said = [starter.stdout.readline() for starter in starters]
        assert sorted(line == "locked\n" for line in said) == [False] * 4 + [True]
        assert all("in use by another run" in line for line in said if line != "locked\n")
    finally:
        for starter in starters:
            starter.kill()
            starter.wait()
            starter.stdout.close()


def test_the_lock_file_stays_one_file(store):
    """Were it deleted and created anew, two runs could each hold a lock of their own."""
    with store.locked():
        first = (store.root / "lock").stat().st_ino
    with store.locked():
        assert (store.root / "lock").stat().st_ino == first
