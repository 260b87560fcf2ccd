"""Workers: they end with their driver also while they start or compute, and one that cannot start is a named error."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from commands import command, contents, flat, invoke, wait_until
from faults.kills import workers
from projects import edited, write

pytestmark = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds workers in /proc")

BUSY = """
import ctypes
from pathlib import Path

def maps(model, batch, key):
    if 5 in batch.ids.tolist() and not Path(__file__).with_suffix(".free").exists():
        Path(__file__).with_suffix(".busy").touch()
        ctypes.PyDLL(None).sleep(600)  # holds the interpreter: no thread of Python can end it
    return batch.images
"""


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def started(folder, plan, store):
    words = command("run", plan, "--store", store, "--jobs", 2)
    return subprocess.Popen(words, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def killed(process):
    """Kill the driver; returns the seconds that its workers lived on."""
    found = workers(process.pid)
    assert found
    process.kill()
    process.wait()
    start = time.monotonic()
    wait_until(lambda: not any(map(alive, found)), seconds=30)
    return time.monotonic() - start


@pytest.fixture
def busy(folder):
    """A plan with a method that computes for ten minutes without letting any other thread of its process run."""
    write(folder / "busy.py", BUSY)
    return edited(folder / "plan.toml", "busy.toml", IG='"busy:maps"')


def test_workers_end_with_their_driver_in_the_middle_of_a_computation(folder, busy):
    process = started(folder, busy, "new")
    try:
        wait_until((folder / "busy.busy").exists, process)
        # The kernel ends them at once; the margin is for a machine that is busy. No thread of theirs could have.
        assert killed(process) < 10
    finally:
        process.kill()
        process.wait()
    (folder / "busy.free").touch()
    invoke(folder, "run", busy, "--store", "new", "--jobs", 1)
    invoke(folder, "run", busy, "--store", "other", "--jobs", 1)
    assert contents(folder / "new") == contents(folder / "other")


def test_workers_end_with_their_driver_while_they_start(folder):
    process = started(folder, "plan.toml", "new")
    try:
        wait_until(lambda: workers(process.pid), process)  # they import torch now
        assert killed(process) < 10
    finally:
        process.kill()
        process.wait()


def test_a_worker_is_watched_before_it_imports_torch():
    # Unpickling the process object calls `end_with` before the state, which needs everything else, is unpickled.
    code = "import sys, roadworthy.core.orphans; sys.exit('torch' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_where_no_worker_can_be_started_the_run_ends_with_an_error_and_frees_its_lock(folder, monkeypatch):
    start = threading.Thread.start

    def refused(thread):
        if "Executor" in type(thread).__name__:
            raise RuntimeError("can't start new thread")
        start(thread)

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refused)
        result = invoke(folder, "run", "plan.toml", "--store", "new", "--jobs", 2, code=1)
    assert "ExecutorError: a worker could not be started" in flat(result.stderr)
    assert "fewer jobs" in flat(result.stderr)
    invoke(folder, "run", "plan.toml", "--store", "new", "--jobs", 1)  # nobody holds the lock
    assert contents(folder / "new") == contents(folder / "run")


def test_a_worker_that_dies_before_its_first_item_is_replaced(folder):
    """Whatever kills it: the run goes on, and ends with the same bytes."""
    process = started(folder, "plan.toml", "new")
    try:
        wait_until(lambda: workers(process.pid), process)
        os.kill(workers(process.pid)[0], signal.SIGKILL)
        assert process.wait(timeout=120) == 0
    finally:
        process.kill()
        process.wait()
    assert contents(folder / "new") == contents(folder / "run")
