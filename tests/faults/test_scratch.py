"""Scratch files: where they are placed, what remains of them, and that they keep nothing open."""

import logging
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import roadworthy as rw
import worlds
from commands import wait_until
from roadworthy.core.errors import StoreError
from roadworthy.experiments.items import Item
from roadworthy.experiments.stores import scratch
from roadworthy.experiments.stores.scratch import ScratchStore

WORLD = worlds.quadrants(n=8)
MAPS = Item("maps", {"method": "IG"}, {"method": "IG"})

HOLD = """
import sys, time
import numpy as np
from roadworthy.experiments.items import Item
from roadworthy.experiments.stores.scratch import ScratchStore
store = ScratchStore()
store.write(Item("maps", {}, {}), {"maps": np.zeros((4, 4))})
print("ready", flush=True)
time.sleep(600)
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("ROADWORTHY_SCRATCH", str(tmp_path / "scratch"))
    return tmp_path / "scratch"


def files(place):
    return sorted(path for path in place.rglob("*.npy"))


def compared():
    return rw.compare(
        WORLD.model, (WORLD.images, WORLD.labels), {"truth": WORLD.truth}, imputers="fixed", fractions=(0.5,),
        controls=(), progress=False,
    )  # fmt: skip


def test_maps_lie_where_the_variable_says_and_go_with_the_comparison(place):
    comparison = compared()
    assert len(files(place)) == 1
    del comparison
    assert files(place) == []


def test_what_is_written_is_read_back(place):
    store, maps = ScratchStore(), np.random.default_rng(0).random((3, 4, 4), dtype=np.float32)
    store.write(MAPS, {"maps": maps, "ties": np.ones(3)})
    found = store.read(MAPS)
    assert np.array_equal(found["maps"], maps)
    found["maps"][:] = 0  # a copy: what is stored does not change
    assert np.array_equal(store.read(MAPS)["maps"], maps)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts open files in /proc")
def test_comparisons_that_are_kept_hold_no_file_open(place):
    def open_files():
        return [link for link in (os.readlink(path) for path in _descriptors()) if str(place) in link]

    kept = [compared() for _ in range(3)]
    assert len(kept) == len(files(place)) == 3
    assert [Path(link).name for link in open_files()] == ["lock"]  # one per process


def _descriptors():
    for name in os.listdir("/proc/self/fd"):
        path = f"/proc/self/fd/{name}"
        if os.path.lexists(path):
            yield path


def test_scratch_files_of_a_killed_process_are_removed_by_the_next_and_those_of_a_live_one_are_kept(place):
    holders = [subprocess.Popen([sys.executable, "-c", HOLD], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    try:
        assert [holder.stdout.readline() for holder in holders] == ["ready\n"] * 2
        assert len(files(place)) == 2
        holders[0].kill()
        holders[0].wait()
        assert len(files(place)) == 2  # nobody tidied up after it
        store = ScratchStore()
        assert len(files(place)) == 1
        holders[1].kill()
        holders[1].wait()
        other = ScratchStore()  # while the first store of this process is in use
        assert files(place) == []
        for mine in (store, other):
            mine.write(MAPS, {"maps": np.zeros(3)})
        assert len(files(place)) == 2
    finally:
        for holder in holders:
            holder.kill()
            holder.wait()
            holder.stdout.close()


def test_a_folder_that_is_not_ours_is_left_alone(place):
    foreign = place / "roadworthy-scratch-mine"
    foreign.mkdir(parents=True)
    (foreign / "notes.txt").write_text("mine")
    ScratchStore()
    assert (foreign / "notes.txt").read_text() == "mine"


def test_a_process_that_ends_leaves_nothing(place):
    code = "from roadworthy.experiments.stores.scratch import ScratchStore; s = ScratchStore(); t = ScratchStore()"
    subprocess.run([sys.executable, "-c", code], check=True)
    wait_until(lambda: not any(place.iterdir()), seconds=5)


def test_large_scratch_space_is_announced_and_too_little_room_is_an_error(place, monkeypatch, caplog):
    store = ScratchStore()
    with caplog.at_level(logging.WARNING, "roadworthy"):
        store.expect(scratch.LARGE - 1)
        assert caplog.text == ""
        store.expect(scratch.LARGE)
    assert "1.1 GB" in caplog.text  # 2**30 bytes
    assert "ROADWORTHY_SCRATCH" in caplog.text
    with pytest.raises(StoreError, match="ROADWORTHY_SCRATCH"):
        store.expect(10**18)


def test_a_full_scratch_disk_names_the_cure(place, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    store = ScratchStore()
    monkeypatch.setattr(scratch.np, "save", full)
    with pytest.raises(StoreError, match=r"No space left.*ROADWORTHY_SCRATCH"):
        store.write(MAPS, {"maps": np.zeros(3)})
