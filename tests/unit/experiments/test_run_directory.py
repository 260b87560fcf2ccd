"""The run directory: complete files or none, corrupt ones in quarantine, one writer at a time, nothing outside."""

import json
import os
import pickle
import struct
import subprocess
import sys

import numpy as np
import pytest

from roadworthy.core.errors import StoreError
from roadworthy.experiments.compute import KINDS
from roadworthy.experiments.items import Block, Item
from roadworthy.experiments.stores.run_directory import FOLDERS, FORMAT, RunDirectory, merge

NEED = Item("maps", {"method": "IG"}, {"method": "IG"})
ITEM = Item(
    "predictions", {"evaluator": "no-retrain", "fraction": 0.5}, {"method": "<b>IG</b>"}, (NEED,),
    Block("test", 0, (0, 1, 2), "abc"),
)  # fmt: skip
ARRAYS = {"ids": np.arange(3), "probability": np.array([0.1, 0.5, 0.9], dtype=np.float32)}


@pytest.fixture
def store(tmp_path):
    return RunDirectory(tmp_path / "run")


def test_every_kind_of_item_has_a_folder():
    assert FOLDERS.keys() == KINDS.keys()


def test_what_is_written_is_read_back_with_its_item(store):
    store.write(ITEM, ARRAYS)
    header, arrays = store.read_file(store.path("predictions", ITEM.id))
    assert (header["kind"], header["spec"], header["label"]) == ("predictions", ITEM.spec, ITEM.label)
    assert (header["block"], header["needs"]) == ("abc", [NEED.id])
    for found in (arrays, store.read(ITEM)):
        assert all(np.array_equal(found[name], ARRAYS[name]) for name in ARRAYS)
    assert store.ids() == {ITEM.id}
    assert list(store.files()) == list(store.files("predictions")) == [store.path("predictions", ITEM.id)]
    assert list(store.files("maps")) == []


def test_the_same_item_is_the_same_bytes(tmp_path):
    first, second = RunDirectory(tmp_path / "a"), RunDirectory(tmp_path / "b")
    for _ in range(5):
        first.write(ITEM, ARRAYS)
        second.write(ITEM, dict(reversed(ARRAYS.items())))
        assert first.path("predictions", ITEM.id).read_bytes() == second.path("predictions", ITEM.id).read_bytes()


def test_a_write_that_fails_leaves_the_old_content(store, monkeypatch):
    store.write(ITEM, ARRAYS)
    before = store.path("predictions", ITEM.id).read_bytes()

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("roadworthy.core.files.os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        store.write(ITEM, {"ids": np.arange(9)})
    assert store.path("predictions", ITEM.id).read_bytes() == before
    assert len(list(store.path("predictions", ITEM.id).parent.iterdir())) == 1


def damaged(store):
    """One complete item and every kind of file that does not belong."""
    store.write(ITEM, ARRAYS)
    folder = store.path("predictions", ITEM.id).parent
    whole = store.path("predictions", ITEM.id).read_bytes()
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
    (folder / f".{ITEM.id}.safetensors.abcd_123").write_bytes(b"half")  # left by a writer that was killed
    (folder / ".DS_Store").write_bytes(b"not ours")
    return folder, len(files) + 1


def test_corrupt_and_foreign_files_are_named_and_moved_to_quarantine(store):
    folder, strange = damaged(store)
    complaints = store.clean()
    assert len(complaints) == strange
    assert all(str(folder) in complaint for complaint in complaints)
    assert sorted(path.name for path in folder.iterdir()) == [".DS_Store", f"{ITEM.id}.safetensors"]
    assert len(list((store.root / "quarantine").iterdir())) == strange
    assert store.clean() == []


@pytest.mark.parametrize("id", ["../../etc/passwd", "a" * 31, "A" * 32, "", "../" + "a" * 29, "a" * 32 + "\n"])
def test_an_id_cannot_leave_its_folder(store, id):
    with pytest.raises(StoreError, match="is not an item's id"):
        store.path("predictions", id)


def test_a_failure_is_kept_until_the_item_succeeds(store):
    store.write_failure(ITEM, "Traceback: boom")
    assert store.failures()[ITEM.id]["traceback"] == "Traceback: boom"
    store.write(ITEM, ARRAYS)
    assert store.failures() == {}


def test_failures_of_items_that_no_longer_exist_are_forgotten(store):
    audit = Item("audit", {}, {})
    for item in (ITEM, NEED, audit):
        store.write_failure(item, "boom")
    store.forget_failures({ITEM.id})
    assert store.failures().keys() == {ITEM.id, audit.id}  # an audit is not part of a run


def test_the_checkpoint_of_an_item_is_deleted_once_it_is_written(store):
    training = Item("model", {}, {})
    path, other = store.checkpoint_path(training), store.checkpoint_path(ITEM)
    path.parent.mkdir(parents=True)
    for checkpoint in (path, other):
        checkpoint.write_bytes(b"half")
    assert store.clean() == []
    assert path.exists()  # a training that may go on
    store.write(training, ARRAYS)
    assert (path.exists(), other.exists()) == (False, True)


# ── one writer at a time ─────────────────────────────────────────────────────────────────────────────────────────────

HOLD = """
import sys, time
from pathlib import Path
from roadworthy.experiments.stores.run_directory import RunDirectory
with RunDirectory(Path(sys.argv[1])).locked():
    print("locked", flush=True)
    time.sleep(600)
"""


def test_two_runs_at_once_are_refused_and_a_dead_ones_lock_is_free(store):
    with subprocess.Popen([sys.executable, "-c", HOLD, str(store.root)], stdout=subprocess.PIPE, text=True) as other:
        try:
            assert other.stdout.readline() == "locked\n"
            with pytest.raises(StoreError, match=f"{store.root} is in use"), store.locked():
                pass
        finally:
            other.kill()
    with store.locked():  # the lock ended with its process
        pass


def test_the_lock_is_released_after_an_error(store):
    with pytest.raises(KeyError), store.locked():
        raise KeyError
    with store.locked(), pytest.raises(StoreError), store.locked():
        pass


# ── manifest ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_manifest_has_a_format_and_another_one_is_refused(store):
    assert store.manifest() == {}
    store.write_manifest({"kind": "plan"})
    assert store.manifest() == {"format": FORMAT, "kind": "plan"}
    (store.root / "manifest.json").write_text(json.dumps({"format": FORMAT + 1}))
    with pytest.raises(StoreError, match=f"format {FORMAT + 1}, this version reads 2 and {FORMAT}"):
        store.manifest()
    for broken in ("{", "[1]", '"text"'):
        (store.root / "manifest.json").write_text(broken)
        with pytest.raises(StoreError, match="manifest"):
            store.manifest()


@pytest.mark.parametrize("name", ["provenance.json", "trials"])
def test_a_directory_of_the_old_format_is_refused(store, name):
    store.root.mkdir()
    (store.root / name).write_text("{}") if "." in name else (store.root / name).mkdir()
    with pytest.raises(StoreError, match="format 1"):
        store.manifest()


# ── format 2: no subfolders ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def flat(store):
    """A directory of format 2, and the bytes of its items by id."""
    store.write(ITEM, ARRAYS)
    store.write(NEED, {"maps": np.zeros((2, 3, 3), np.float32)})
    store.write_manifest({"kind": "plan", "durations": {ITEM.id: 2.0}})
    content = {}
    for path in list(store.files()):
        content[path.stem] = path.read_bytes()
        path.rename(path.parent.parent / path.name)
        path.parent.rmdir()
    (store.root / "manifest.json").write_text(json.dumps({**store.manifest(), "format": 2}))
    return content


def test_a_directory_of_format_2_is_read_and_merged_as_it_is(store, flat, tmp_path):
    assert store.manifest()["durations"] == {ITEM.id: 2.0}
    assert store.ids() == flat.keys() == {path.stem for path in store.files()}
    assert np.array_equal(store.read(ITEM)["ids"], ARRAYS["ids"])
    both = RunDirectory(tmp_path / "both")
    assert merge([store], both) == 2
    assert {path.stem: path.read_bytes() for path in both.root.glob("*/??/*")} == flat
    assert store.manifest()["format"] == 2  # only read


def test_a_run_moves_the_files_of_format_2_into_subfolders(store, flat):
    assert store.clean() == []
    assert {path.stem: path.read_bytes() for path in store.root.glob("*/??/*")} == flat
    assert not list(store.root.glob("*/*.safetensors"))
    assert store.manifest() == {"format": FORMAT, "kind": "plan", "durations": {ITEM.id: 2.0}}


def test_nothing_is_moved_through_a_link(store, flat, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    folder = store.root / "predictions"
    path = next(path for path in folder.iterdir() if path.suffix == ".safetensors")
    (folder / path.name[:2]).symlink_to(outside)
    with pytest.raises(StoreError, match="symbolic link"):
        store.clean()
    assert path.exists()
    assert not list(outside.iterdir())


def test_files_can_be_moved_in_part(store, flat, monkeypatch):
    """A kill between two renames: everything is still found, and the next run moves the rest."""
    move = type(store.root).rename

    def killed(path, target):
        if ITEM.id in path.name:
            raise KeyboardInterrupt
        return move(path, target)

    monkeypatch.setattr(type(store.root), "rename", killed)
    with pytest.raises(KeyboardInterrupt):
        store.clean()
    assert store.manifest()["format"] == FORMAT  # older versions refuse it from the first move on
    assert store.ids() == flat.keys()
    assert np.array_equal(store.read(ITEM)["ids"], ARRAYS["ids"])
    monkeypatch.undo()
    assert store.clean() == []
    assert {path.stem for path in store.root.glob("*/??/*")} == flat.keys()


def test_an_item_in_the_wrong_subfolder_is_foreign(store):
    store.write(ITEM, ARRAYS)
    path = store.path("predictions", ITEM.id)
    other = path.parent.with_name("00" if ITEM.id[:2] != "00" else "01") / path.name
    other.parent.mkdir()
    path.rename(other)
    assert "foreign" in store.clean()[0]
    assert store.ids() == set()


# ── merging ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def runs(tmp_path):
    first, second = RunDirectory(tmp_path / "a"), RunDirectory(tmp_path / "b")
    first.write(ITEM, ARRAYS)
    second.write(ITEM, ARRAYS)
    second.write(NEED, {"maps": np.zeros((2, 3, 3), np.float32)})
    for run, item in ((first, ITEM), (second, NEED)):
        run.write_manifest(
            {"kind": "plan", "fingerprints": {"model": "m"}, "durations": {item.id: 2.0}, "cpu_seconds": {item.id: 1.0}}
        )
        run.plan_path.write_text("[data]")
    return first, second


def test_merging_copies_what_is_missing(runs, tmp_path):
    both = RunDirectory(tmp_path / "c")
    assert merge(runs, both, dry_run=True) == 2
    assert not both.root.exists()
    assert merge(runs, both) == 2
    assert both.ids() == {ITEM.id, NEED.id}
    assert both.read(NEED)["maps"].shape == (2, 3, 3)
    assert both.manifest()["durations"] == {ITEM.id: 2.0, NEED.id: 2.0}
    assert both.manifest()["cpu_seconds"] == {ITEM.id: 1.0, NEED.id: 1.0}
    assert both.manifest()["kind"] == "plan"
    assert both.plan_path.read_text() == "[data]"
    assert merge(runs, both) == 0


def test_merging_refuses_what_is_corrupt_or_not_the_run_of_a_plan(runs, tmp_path):
    runs[0].path("predictions", ITEM.id).write_bytes(b"broken")
    with pytest.raises(StoreError, match="not a valid item"):
        merge(runs, RunDirectory(tmp_path / "d"))
    with pytest.raises(StoreError, match="nowhere is not a run directory"):
        merge([RunDirectory(tmp_path / "nowhere")], RunDirectory(tmp_path / "e"))
    saved = RunDirectory(tmp_path / "saved")
    saved.write_manifest({"kind": "comparison"})
    with pytest.raises(StoreError, match="not a run directory of a plan"):
        merge([saved], RunDirectory(tmp_path / "f"))
