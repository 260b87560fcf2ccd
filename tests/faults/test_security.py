"""Reading results runs no code of a plan; names cannot reach a terminal or a spreadsheet; links lead nowhere."""

import json
import os
import shutil

import pandas as pd
import pytest

import roadworthy as rw
from commands import flat, invoke
from projects import edited, write
from roadworthy.core.text import csv_bytes, csv_cell, csv_text, printable
from roadworthy.experiments.audit_run import Audit

OWN = """
from pathlib import Path

import torch

def mark():
    Path(__file__).with_name("code was run").touch()

mark()  # when it is imported, and when anything of it is called

def build():
    mark()
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(2), torch.nn.Flatten(), torch.nn.Linear(12, 4))

def maps(model, batch, key):
    mark()
    return batch.images

def gray(batch, removed, key):
    mark()
    return torch.where(removed[:, None], 0.5, batch.images)
"""


@pytest.fixture
def own(folder):
    """A finished run of a plan whose model, method and imputer are code; the marker of that code is removed."""
    write(folder / "mine.py", OWN)
    plan = edited(
        folder / "plan.toml", "own.toml", factory='"mine:build"', IG='"mine:maps"', imputers='["fixed", "mine:gray"]'
    )
    invoke(folder, "run", plan, "--store", "own", "--jobs", 1)
    (folder / "code was run").unlink()
    return folder


def ran(folder):
    return (folder / "code was run").exists()


def test_commands_that_only_read_run_no_code_of_the_plan(own):
    for words in (
        ("status", "own"),
        ("show", "own"),
        ("report", "own", "-o", "page.html"),
        ("report", "own", "-o", "page.html", "--plan", "own.toml"),
        ("figures", "own", "--out", "figures"),
        ("export", "own", "table.csv"),
        ("diff", "own", "own"),
        ("merge", "own", "--into", "all"),
    ):
        invoke(own, *words)
        assert not ran(own), words
    comparison = rw.load(own / "own")
    comparison.report(own / "page.html")
    comparison.plot.examples()
    assert not ran(own)
    # What is code of the plan is left out of the pictures, and the page says so; the built-in imputer is shown.
    page = (own / "page.html").read_text()
    assert "data:image/png" in page
    assert "Examples without" in page
    assert "gray" in page


def test_without_a_built_in_imputer_the_page_says_why_it_has_no_pictures(own):
    plan = edited(own / "own.toml", "gray.toml", imputers='["mine:gray"]')
    invoke(own, "run", plan, "--store", "gray", "--jobs", 1)
    (own / "code was run").unlink()
    findings = rw.load(own / "gray").findings()
    assert findings.examples == []
    assert "runs no code of a plan" in " ".join(findings.no_examples.split())
    assert not ran(own)


def test_a_dry_run_first_says_which_code_it_runs(own):
    words = flat(invoke(own, "run", "own.toml", "--store", "new", "--dry-run").stdout)
    place = words.index("This runs code that the plan names: mine:maps, mine:gray, mine:build")
    assert place < words.index("points are missing")
    assert ran(own)
    assert not (own / "new").exists()


@pytest.mark.parametrize("command", ["run", "train"])
def test_the_help_of_commands_that_run_code_says_so(folder, command):
    assert "code" in flat(invoke(folder, command, "--help").stdout)


# ── names ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def hostile(folder, name):
    """A saved comparison whose method has this name: plans refuse it, but a directory may come from elsewhere."""
    comparison = rw.load(folder / "run")
    results = comparison.results
    renamed = {
        point._replace(method=point.method.replace("IG", name)): value for point, value in results.predictions.items()
    }
    rw.Comparison(type(results)(**{**results.__dict__, "predictions": renamed})).save(folder / "hostile")
    return folder / "hostile"


def test_control_characters_in_names_reach_no_terminal(folder):
    store = hostile(folder, "\x1b]0;owned\x07\x1b[2J\u202e")
    for words in (("show", store), ("diff", store, store, "--all")):
        output = invoke(folder, *words).output
        assert not any(character in output for character in "\x1b\x07\u202e"), words
        assert "owned" in output
    assert "\x1b" not in str(rw.load(store))
    error = invoke(folder, "figures", store, "--out", "f", "--method", "\x1b[2Jnobody", code=1)
    assert "\x1b" not in error.output


def test_a_failure_is_shown_without_its_control_characters(folder):
    id = "0" * 32
    content = {"kind": "audit", "label": {"method": "\x1b[2J"}, "traceback": "\x1b]0;owned\x07boom"}
    (folder / "run" / "failed").mkdir(exist_ok=True)
    (folder / "run" / "failed" / f"{id}.json").write_text(json.dumps(content))
    output = invoke(folder, "status", "run").output
    assert "boom" in output
    assert "\x1b" not in output


@pytest.mark.parametrize("name", ["=1+1", "+1", "-IG", "@SUM(A1)", "\tx", "\rx", "'=1", "''-x"])
def test_a_cell_that_a_spreadsheet_would_compute_is_quoted_and_read_back(name):
    assert csv_cell(name).startswith("'")
    assert csv_text(csv_cell(name)) == name


def test_other_cells_and_numbers_stay_as_they_are():
    table = pd.DataFrame({"method": ["IG", "-x", "'quoted'"], "value": [-0.5, 1.0, 2.0]})
    assert csv_bytes(table) == b"method,value\nIG,-0.5\n'-x,1.0\n'quoted',2.0\n"
    assert printable("über\n\tIG 1·2") == "über\n\tIG 1·2"


def test_exported_tables_are_quoted_as_csv_and_exact_otherwise(folder):
    store = hostile(folder, "=HYPERLINK(1)")
    invoke(folder, "export", store, "table.csv")
    invoke(folder, "export", store, "table.json")
    assert "\n=" not in (folder / "table.csv").read_text()
    assert ",=" not in (folder / "table.csv").read_text()
    assert "'=HYPERLINK(1)" in (folder / "table.csv").read_text()
    assert "=HYPERLINK(1)" in set(pd.read_json(folder / "table.json")["method"])


def test_audit_tables_are_quoted_and_read_back(tmp_path):
    table = pd.DataFrame({"method": ["=IG", "IG"], "order": ["morf", "lerf"], "found": [-0.25, 0.5]})
    Audit({"conclusions": table}).save(tmp_path)
    assert "'=IG" in (tmp_path / "conclusions.csv").read_text()
    pd.testing.assert_frame_equal(Audit.load(tmp_path).tables["conclusions"], table, check_dtype=False)


# ── files ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_output_through_a_link_replaces_the_file_and_keeps_the_link(folder):
    (folder / "real.html").write_text("old")
    (folder / "link.html").symlink_to("real.html")
    invoke(folder, "report", "run", "-o", "link.html")
    assert (folder / "link.html").is_symlink()
    assert (folder / "real.html").read_text().startswith("<!")


def test_an_item_that_is_a_link_is_set_aside_and_not_written_through(folder):
    item = next((folder / "run" / "predictions").glob("*/*"))
    outside = folder / "outside"
    shutil.copy(item, outside)
    item.unlink()
    item.symlink_to(outside)
    before = outside.stat().st_mtime_ns
    invoke(folder, "run", "plan.toml", "--store", "run", "--jobs", 1)
    assert not item.is_symlink()
    assert outside.stat().st_mtime_ns == before


def test_broken_files_of_a_run_directory_are_set_aside_and_the_run_goes_on(folder):
    store = folder / "run"
    (store / "manifest.json").write_text("{broken")
    (store / "failed").mkdir(exist_ok=True)
    (store / "failed" / f"{'1' * 32}.json").write_text("{broken")
    (store / "failed" / "notes.json").write_text("{}")
    (store / "predictions" / ".hidden").write_text("mine")
    os.mkfifo(store / "predictions" / "pipe")
    (store / "predictions" / "folder").mkdir()
    result = invoke(folder, "run", "plan.toml", "--store", "run", "--jobs", 1)
    assert flat(result.stderr).count("moved to") == 5
    assert (store / "predictions" / ".hidden").read_text() == "mine"
    assert json.loads((store / "manifest.json").read_text())["kind"] == "plan"
    assert "failed 0" in flat(invoke(folder, "status", "run").stdout)


def test_a_broken_failure_does_not_hide_the_others(folder):
    (folder / "run" / "failed").mkdir(exist_ok=True)
    (folder / "run" / "failed" / f"{'1' * 32}.json").write_text("{broken")
    content = {"kind": "audit", "label": {}, "traceback": "boom"}
    (folder / "run" / "failed" / f"{'2' * 32}.json").write_text(json.dumps(content))
    assert "failed 1" in flat(invoke(folder, "status", "run").stdout)
