"""The store: whole files or none, corrupt ones set aside, one writer at a time, nothing outside its folder."""

import json
import os
import pickle
import struct
import subprocess
import sys
import time

import numpy as np
import pytest

import roadworthy as rw
import worlds
from roadworthy.core.errors import StoreError
from roadworthy.experiments.items import Item
from roadworthy.experiments.stores import run_directory as store_module
from roadworthy.experiments.stores.run_directory import Store, merge_stores

ITEM = Item("trial", {"method": "IG", "fraction": 0.5}, {"method": "<b>IG</b>"})
ARRAYS = {"ids": np.arange(3), "probability": np.array([0.1, 0.5, 0.9], dtype=np.float32)}


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "run")


def test_what_is_written_is_read_back_with_its_item(store):
    store.write(ITEM, ARRAYS)
    header, arrays = store.read("trial", ITEM.id)
    assert header["spec"] == ITEM.spec
    assert header["label"] == ITEM.label
    assert all(np.array_equal(arrays[name], ARRAYS[name]) for name in ARRAYS)
    assert store.ids("trial") == {ITEM.id}


def test_the_same_item_is_the_same_bytes(tmp_path):
    first, second = Store(tmp_path / "a"), Store(tmp_path / "b")
    for _ in range(5):
        first.write(ITEM, ARRAYS)
        second.write(ITEM, dict(reversed(ARRAYS.items())))
        assert first.path("trial", ITEM.id).read_bytes() == second.path("trial", ITEM.id).read_bytes()


def test_a_write_that_fails_leaves_nothing_behind(store, monkeypatch):
    store.write(ITEM, ARRAYS)
    before = store.path("trial", ITEM.id).read_bytes()

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("roadworthy.core.files.os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        store.write(ITEM, {"ids": np.arange(9)})
    assert store.path("trial", ITEM.id).read_bytes() == before
    assert len(list(store.path("trial", ITEM.id).parent.iterdir())) == 1


def damaged(store):
    """One whole item and every kind of file that does not belong."""
    store.write(ITEM, ARRAYS)
    folder = store.path("trial", ITEM.id).parent
    whole = store.path("trial", ITEM.id).read_bytes()
    flipped = bytearray(whole)
    flipped[-1] ^= 1
    files = {
        "0" * 32: whole,  # foreign: another item's content
        "1" * 32: whole[:-4],  # truncated
        "2" * 32: struct.pack("<Q", 2 << 30) + b"{}",  # a header of 2 GB
        "3" * 32: pickle.dumps({"evil": os.getcwd}),  # a pickle in disguise
        "4" * 32: b"",
        "5" * 32: bytes(flipped),
    }
    for name, content in files.items():
        (folder / f"{name}.safetensors").write_bytes(content)
    (folder / "notes.txt").write_text("mine")
    (folder / ".ID.safetensors.tmp").write_bytes(b"half")
    return folder, len(files) + 1


def test_corrupt_and_foreign_files_are_named_set_aside_and_gone(store):
    folder, strange = damaged(store)
    complaints = store.clean()
    assert len(complaints) == strange
    assert all(str(folder) in complaint for complaint in complaints)
    assert [path.name for path in folder.iterdir()] == [f"{ITEM.id}.safetensors"]
    assert len(list((store.root / "aside").iterdir())) == strange
    assert store.clean() == []


@pytest.mark.parametrize("id", ["../../etc/passwd", "a" * 31, "A" * 32, "", "../" + "a" * 29, "a" * 32 + "\n"])
def test_an_id_cannot_leave_its_folder(store, id):
    with pytest.raises(StoreError, match="no item's id"):
        store.path("trial", id)


def test_a_failure_is_kept_until_the_item_succeeds(store):
    store.write_failure(ITEM, "Traceback: boom")
    assert store.failures()[ITEM.id]["traceback"] == "Traceback: boom"
    store.write(ITEM, ARRAYS)
    assert store.failures() == {}


def test_two_runs_at_once_are_refused_with_the_owners_name(store):
    with store.locked(), pytest.raises(StoreError, match=f"process {os.getpid()}"), store.locked():
        pass
    with store.locked():  # and it is free afterwards
        pass
    assert not (store.root / "lock").exists()


def test_a_dead_owners_lock_is_taken_over(store):
    store.root.mkdir()
    dead = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True, check=True
    )
    owner = {"host": store_module.socket.gethostname(), "pid": int(dead.stdout)}
    (store.root / "lock").write_text(json.dumps(owner))
    with store.locked():
        assert json.loads((store.root / "lock").read_text())["pid"] == os.getpid()


def test_a_lock_of_another_machine_counts_by_its_age(store):
    store.root.mkdir()
    lock = store.root / "lock"
    lock.write_text(json.dumps({"host": "elsewhere", "pid": 1}))
    with pytest.raises(StoreError, match="elsewhere"), store.locked():
        pass
    old = time.time() - store_module.SILENCE - 1
    os.utime(lock, (old, old))
    with store.locked():
        pass


def test_a_running_store_shows_signs_of_life(store, monkeypatch):
    monkeypatch.setattr(store_module, "HEARTBEAT", 0.01)
    with store.locked():
        lock = store.root / "lock"
        os.utime(lock, (0, 0))
        deadline = time.time() + 10
        while lock.stat().st_mtime == 0 and time.time() < deadline:
            time.sleep(0.01)
        assert lock.stat().st_mtime > 0


def test_merging_copies_what_is_missing_and_refuses_what_is_corrupt(tmp_path):
    first, second, both = (Store(tmp_path / name) for name in "abc")
    other = Item("map", {"method": "GB"}, {})
    first.write(ITEM, ARRAYS)
    second.write(ITEM, ARRAYS)
    second.write(other, {"scores": np.zeros((2, 3, 3), np.float32)})
    assert merge_stores([first, second], both, dry_run=True) == 2
    assert not both.root.exists()
    assert merge_stores([first, second], both) == 2
    assert both.ids("trial") == {ITEM.id}
    assert both.read_scores(other.id).shape == (2, 3, 3)
    first.path("trial", ITEM.id).write_bytes(b"broken")
    with pytest.raises(StoreError, match="no item"):
        merge_stores([first], Store(tmp_path / "d"))
    with pytest.raises(StoreError, match="no such folder"):
        merge_stores([Store(tmp_path / "nowhere")], both)


def test_a_comparison_is_saved_as_a_store_and_read_back(tmp_path):
    world = worlds.quadrants(n=8)
    comparison = rw.compare(world.model, (world.images, world.labels), {"truth": world.truth}, fractions=(0.5,))
    comparison.save(tmp_path / "run")
    found = Store(tmp_path / "run").predictions()
    assert found.keys() == comparison.predictions.keys()
    for point, prediction in found.items():
        assert np.array_equal(prediction.probability, comparison.predictions[point].probability)
    with pytest.raises(StoreError, match="holds trials already"):
        comparison.save(tmp_path / "run")
