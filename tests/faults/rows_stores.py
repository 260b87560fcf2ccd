"""Run directories: broken, foreign, hostile, or not there."""

import json
import os
import shutil
import struct

import roadworthy as rw
from faults.table import Row, UsageError, command
from roadworthy.core.errors import IncompleteError, InputError, PlanError, StoreError
from roadworthy.experiments.stores.run_directory import RunDirectory

READERS = {
    "status": ("status", "run"),
    "show": ("show", "run"),
    "report": ("report", "run", "-o", "page.html"),
    "figures": ("figures", "run", "--out", "figures"),
    "export": ("export", "run", "table.csv"),
}


def manifest(change):
    """Change the manifest: a function of its content, or the new text."""

    def given(folder):
        path = folder / "run" / "manifest.json"
        content = json.loads(path.read_text())
        if callable(change):
            change(content)
            change_text = json.dumps(content)
        else:
            change_text = change
        path.write_text(change_text)

    return given


def updated(**keys):
    return manifest(lambda content: content.update(keys))


def prints(**keys):
    return manifest(lambda content: content["fingerprints"].update(keys))


def without(key):
    return manifest(lambda content: content.pop(key))


BROKEN = {
    "empty": (manifest(""), "run the plan again"),
    "cut": (manifest('{"format": 2, '), "run the plan again"),
    "a list": (manifest("[1]"), "run the plan again"),
    "a text": (manifest('"text"'), "run the plan again"),
    "binary": (lambda folder: (folder / "run" / "manifest.json").write_bytes(b"\xff\xfe\x00"), "run the plan again"),
    "nested deeply": (manifest("[" * 100_000), "run the plan again"),
    "of the future": (updated(format=99), "this version reads 2"),
    "of the past": (updated(format=1), "this version reads 2"),
    "without format": (without("format"), "run the plan again"),
    "with a format that is no number": (updated(format="two"), "run the plan again"),
    "with durations that are a list": (updated(durations=[1]), "durations is a list"),
    "with a duration that is a text": (updated(durations={"a": "long"}), "duration of a"),
    "with a duration that is NaN": (updated(durations={"a": float("nan")}), "duration of a"),
    "with a duration below 0": (updated(durations={"a": -1}), "duration of a"),
    "with processor time below 0": (updated(cpu_seconds={"a": -1}), "duration of a"),
    "with a folder that is a number": (updated(folder=7), "folder is a int"),
    "with classes that are a number": (updated(classes=7), "classes is a int"),
    "with versions that are a list": (updated(versions=[]), "versions is a list"),
    "with a machine that is a text": (updated(machine="big"), "machine is a str"),
    "without fingerprints": (without("fingerprints"), "run the plan again"),
    "with fingerprints that are a list": (updated(fingerprints=[]), "run the plan again"),
    "with an unknown fingerprint": (prints(moon="full"), "run the plan again"),
    "with a block size of 0": (prints(block_size=0), "run the plan again"),
    "with a block size that is a text": (prints(block_size="8"), "run the plan again"),
    "with images that are a text": (prints(images="many"), "run the plan again"),
    "with data that are numbers": (prints(data=[1]), "not a list of texts"),
    "with more blocks than images": (prints(data=["a"] * 99), "99 blocks"),
    "of no known kind": (updated(kind="other"), "make one with"),
    "a folder": (lambda folder: _replaced(folder / "run" / "manifest.json", os.mkdir), "run the plan again"),
    "a pipe": (lambda folder: _replaced(folder / "run" / "manifest.json", os.mkfifo), "a pipe"),
}


def _replaced(path, make):
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()
    make(path)


def _linked(name):
    """A folder of the run directory that leads out of it."""

    def given(folder):
        path = folder / "run" / name
        target = folder / "elsewhere"
        shutil.copytree(path, target) if path.exists() else target.mkdir()
        shutil.rmtree(path, ignore_errors=True)
        path.symlink_to(target)

    return given


def _linked_subfolder(folder):
    path = first(folder).parent
    shutil.copytree(path, folder / "elsewhere")
    shutil.rmtree(path)
    path.symlink_to(folder / "elsewhere")


def _a_file(name):
    def given(folder):
        shutil.rmtree(folder / "run" / name, ignore_errors=True)
        (folder / "run" / name).write_text("not a folder")

    return given


def first(folder, kind="predictions"):
    return next(RunDirectory(folder / "run").files(kind))


def _item(content):
    def given(folder):
        path = first(folder)
        path.write_bytes(content(path.read_bytes()) if callable(content) else content)

    return given


def _header(**changes):
    """The item with a changed header, otherwise intact."""

    def given(folder):
        path = first(folder)
        content = path.read_bytes()
        (length,) = struct.unpack("<Q", content[:8])
        header = json.loads(content[8 : 8 + length])
        header["__metadata__"]["item"] = json.dumps({**json.loads(header["__metadata__"]["item"]), **changes})
        text = json.dumps(header).encode()
        path.write_bytes(struct.pack("<Q", len(text)) + text + content[8 + length :])

    return given


ITEMS = {
    "empty": (_item(b""), "truncated"),
    "cut": (_item(lambda content: content[:-3]), "corrupt"),
    "cut in its header": (_item(lambda content: content[:20]), "truncated"),
    "with a header of 2 GB": (_item(struct.pack("<Q", 2 << 30) + b"{}"), "larger than the file"),
    "with a changed byte": (_item(lambda content: content[:-1] + bytes([content[-1] ^ 1])), "checksum"),
    "without metadata": (_item(struct.pack("<Q", 2) + b"{}"), "header"),
    "nested deeply": (_item(struct.pack("<Q", 90_000) + b"[" * 90_000), "header"),
    "with a label that is a list": (_header(label=[]), "label is a list"),
    "with needs that are a text": (_header(needs="all"), "needs is a str"),
    "with a spec that is a number": (_header(spec=1), "spec is a int"),
    "of another kind": (_header(kind="maps"), "foreign"),
    "of an unknown kind": (_header(kind="moon"), "foreign"),
    "of another block": (_header(block="another"), "foreign"),
}


def nowhere(*words):
    return command(*(word.replace("run", "nowhere") for word in words))


def saved(folder):
    """The run directory of a saved comparison, beside the plan's."""
    rw.load(folder / "run").save(folder / "saved")


def saved_with(**keys):
    def given(folder):
        saved(folder)
        path = folder / "saved" / "manifest.json"
        content = json.loads(path.read_text())
        content["results"].update(keys)
        path.write_text(json.dumps(content))

    return given


def emptied(folder):
    shutil.rmtree(folder / "run" / "predictions")


def run_into(store, **options):
    return lambda folder: rw.run(folder / "plan.toml", folder / store, progress=False, **options)


ROWS = [
    *(
        Row(f"{name}: a manifest {what}", command(*words), StoreError, cure, given)
        for what, (given, cure) in BROKEN.items()
        for name, words in (
            READERS.items() if what in ("cut", "a pipe", "of the future") else [("show", READERS["show"])]
        )
    ),
    *(
        Row(f"show: an item {what}", command("show", "run"), StoreError, cure, given)
        for what, (given, cure) in ITEMS.items()
    ),
    *(
        Row(f"{name}: no such directory", nowhere(*words), StoreError, "roadworthy run PLAN")
        for name, words in READERS.items()
    ),
    *(
        Row(
            f"{name}: a folder that is no run directory",
            command(*(w.replace("run", "images") for w in words)),
            StoreError,
            "roadworthy run PLAN",
        )
        for name, words in READERS.items()
    ),
    *(
        Row(f"{verb}: {name} leads out of the directory", do, StoreError, "symbolic link", _linked(name))
        for name in ("predictions", "maps", "models", "audits", "failed", "quarantine", "audit")
        for verb, do in (("run", run_into("run")), ("show", command("show", "run")))
    ),
    *(
        Row(f"{verb}: a subfolder leads out of the directory", do, StoreError, "symbolic link", _linked_subfolder)
        for verb, do in (
            ("run", run_into("run")),
            ("show", command("show", "run")),
            ("status", command("status", "run")),
        )
    ),
    *(
        Row(f"run: {name} is a file", run_into("run"), StoreError, "move it away", _a_file(name))
        for name in ("predictions", "maps", "failed", "quarantine")
    ),
    Row("run: the store is a file", run_into("plan.toml"), StoreError, "choose another"),
    Row("run: the store is below a file", run_into("plan.toml/run"), StoreError, "choose another"),
    Row(
        "run: the store is a device",
        lambda folder: rw.run(folder / "plan.toml", "/dev/null", progress=False),
        StoreError,
        "choose another",
    ),
    Row(
        "run: the store is a link to itself",
        run_into("loop"),
        StoreError,
        "choose another",
        lambda folder: (folder / "loop").symlink_to(folder / "loop"),
    ),
    Row("run: the name of the store is too long", run_into("x" * 300), StoreError, "shorter"),
    Row(
        "run: the lock is a folder",
        run_into("run"),
        StoreError,
        "cannot be locked",
        lambda folder: _replaced(folder / "run" / "lock", os.mkdir),
    ),
    Row(
        "run: the lock is a link",
        run_into("run"),
        StoreError,
        "cannot be locked",
        lambda folder: _replaced(folder / "run" / "lock", lambda path: path.symlink_to(folder / "plan.toml")),
    ),
    Row("run: the store holds a saved comparison", run_into("saved"), StoreError, "another directory", saved),
    Row(
        "run: the store has the old format",
        run_into("run"),
        StoreError,
        "new directory",
        lambda folder: (folder / "run" / "provenance.json").write_text("{}"),
    ),
    Row("run: a manifest of the future", run_into("run"), StoreError, "new directory", updated(format=99)),
    Row(
        "save: a directory with results",
        lambda folder: rw.load(folder / "run").save(folder / "run"),
        StoreError,
        "new folder",
        may_write=("lock",),
    ),
    Row(
        "save: a file", lambda folder: rw.load(folder / "run").save(folder / "plan.toml"), StoreError, "choose another"
    ),
    Row(
        "load: a saved comparison without its items",
        lambda folder: rw.load(folder / "saved"),
        StoreError,
        "could not be read",
        lambda folder: (saved(folder), shutil.rmtree(folder / "saved" / "predictions")),
    ),
    *(
        Row(
            f"load: a saved comparison with {what}",
            lambda folder: rw.load(folder / "saved"),
            StoreError,
            cure,
            saved_with(**keys),
        )
        for what, keys, cure in (
            ("items that are numbers", {"items": [1, 2]}, "saved comparison"),
            ("an item that leads out", {"items": ["../../etc/passwd"]}, "is not an item"),
            ("copies that are numbers", {"copies": {"a": 1}}, "saved comparison"),
            ("ties that are texts", {"ties": {"a": "b"}}, "saved comparison"),
            ("a stopping rule of nonsense", {"stopping": {"moon": 1}}, "saved comparison"),
            ("a number of images that is a text", {"available": "many"}, "saved comparison"),
        )
    ),
    Row("load: an empty store", lambda folder: rw.load(folder / "run"), IncompleteError, "run its plan again", emptied),
    Row("show: an empty store", command("show", "run"), IncompleteError, "run its plan again", emptied),
    Row(
        "export: an empty store", command("export", "run", "table.csv"), IncompleteError, "run its plan again", emptied
    ),
    Row(
        "figures: an empty store",
        command("figures", "run", "--out", "f"),
        IncompleteError,
        "run its plan again",
        emptied,
    ),
    Row(
        "load: a directory without a plan",
        lambda folder: rw.load(folder / "run"),
        StoreError,
        "make one with",
        lambda folder: (folder / "run" / "plan.toml").unlink(),
    ),
    Row(
        "load: a kept plan that is a pipe",
        lambda folder: rw.load(folder / "run"),
        StoreError,
        "make one with",
        lambda folder: _replaced(folder / "run" / "plan.toml", os.mkfifo),
    ),
    Row(
        "load: a kept plan that is broken",
        lambda folder: rw.load(folder / "run"),
        PlanError,
        "TOML",
        lambda folder: (folder / "run" / "plan.toml").write_text("[data"),
    ),
    Row(
        "load: a kept plan with more images",
        lambda folder: rw.load(folder / "run"),
        StoreError,
        "blocks",
        prints(images=99, block_size=8),
    ),
    *(
        Row(f"load: folder={value!r}", lambda folder, value=value: rw.load(value), InputError, "run directory")
        for value in (None, 7, 1.5, b"run", ["run"], "", "a\0b", True)
    ),
    Row("load: folder='nowhere'", lambda folder: rw.load(folder / "nowhere"), StoreError, "roadworthy run PLAN"),
    Row("load: a file", lambda folder: rw.load(folder / "plan.toml"), StoreError, "choose another"),
    *(
        Row(f"load: plan={value!r}", lambda folder, value=value: rw.load(folder / "run", value), PlanError, "plan|TOML")
        for value in (7, "nowhere.toml", "/dev/null/x", "", ".", "a\0b", b"plan", ["plan"], 1.5, "/proc/self")
    ),
    Row(
        "merge: a corrupt item",
        command("merge", "run", "--into", "all"),
        StoreError,
        "corrupt|not a valid item",
        _item(b"broken"),
        may_write=("all", "lock"),
    ),
    Row(
        "merge: a source that does not exist",
        command("merge", "nowhere", "--into", "all"),
        StoreError,
        "not a run directory",
    ),
    Row(
        "merge: a source that is a file",
        command("merge", "plan.toml", "--into", "all"),
        StoreError,
        "not a folder",
    ),
    Row("merge: into a file", command("merge", "run", "--into", "plan.toml"), StoreError, "choose another"),
    Row(
        "merge: into a saved comparison",
        command("merge", "run", "--into", "saved"),
        StoreError,
        "another directory",
        saved,
        may_write=("lock",),
    ),
    Row(
        "merge: a saved comparison",
        command("merge", "saved", "--into", "all"),
        StoreError,
        "only those",
        saved,
    ),
    Row(
        "merge: a linked folder",
        command("merge", "run", "--into", "all"),
        StoreError,
        "symbolic link",
        _linked("predictions"),
    ),
    Row("merge: nothing", command("merge", "--into", "all"), UsageError, "folders"),
]
