"""`roadworthy run` on a user's project: what is computed, what is not computed again, what is refused."""

import shutil

import numpy as np
import pytest

from commands import contents, flat, invoke, output_of, roadworthy, stamps
from projects import edited, write
from roadworthy.experiments.stores.run_directory import RunDirectory

POINTS = 8 * 2 * 2 * 2 * 4
"""Of the plan: 8 methods, controls and copies, 2 orders, 2 imputers, 2 seeds, fractions 0, 0.2, 0.5 and 0.8."""


def run(project, store, *words, plan="plan.toml", code=0):
    return invoke(project, "run", plan, "--store", store, "--jobs", 1, *words, code=code)


@pytest.fixture
def store(project, uninterrupted, request):
    """A copy of the complete run directory, to be changed."""
    return shutil.copytree(project / "uninterrupted", project / request.node.name)


def test_status_of_a_complete_run_in_a_process_of_its_own(project, uninterrupted):
    words = roadworthy(project, "status", "uninterrupted").stdout
    assert f"done {len(uninterrupted):,}  pending 0  failed 0" in words
    assert "s per curve" in words


def test_a_complete_run_computes_nothing_again(project, store):
    before = stamps(store)
    words = flat(run(project, store).stdout)
    assert f"{len(before)} of {len(before)} items" in words
    assert stamps(store) == before


def test_corrupt_and_foreign_files_are_moved_to_quarantine_and_computed_again(project, store, uninterrupted):
    truncated, renamed, *_ = sorted((store / "predictions").glob("*/*"))
    truncated.write_bytes(truncated.read_bytes()[:-9])
    other = renamed.with_name("0" * 32 + ".safetensors")
    renamed.rename(other)
    (store / "maps" / "notes.txt").write_text("mine")
    warnings = flat(run(project, store).stderr)
    for name in (truncated.name, other.name, "notes.txt"):
        assert name in warnings
    assert sorted(path.name.rpartition(".")[0] for path in (store / "quarantine").iterdir()) == sorted(
        [truncated.name, other.name, "notes.txt"]
    )
    assert contents(store) == uninterrupted


def test_changed_weights_are_new_work(project, store):
    assert f"0 of {POINTS} points are missing" in flat(run(project, store, "--dry-run").stdout)
    weights = project / "weights.safetensors"
    original = weights.read_bytes()
    try:
        weights.write_bytes(original[:-4] + np.float32(0.123).tobytes())
        assert f"{POINTS} of {POINTS} points are missing" in flat(run(project, store, "--dry-run").stdout)
    finally:
        weights.write_bytes(original)


def test_a_fraction_added_to_a_plan_costs_only_itself(project, store, uninterrupted):
    more = edited(project / "plan.toml", "more.toml", fractions="[0.2, 0.5, 0.6, 0.8]")
    result = run(project, store, plan=more)
    assert "another plan" in flat(result.stderr)
    items = contents(store)
    assert len(items) == len(uninterrupted) + 8 * 2 * 2 * 2 * 3
    assert {name: items[name] for name in uninterrupted} == uninterrupted
    assert "pending 0" in output_of(project, "status", store)


def test_a_dry_run_shows_the_axes_and_the_cost_and_computes_nothing(project):
    words = output_of(project, "run", "plan.toml", "--dry-run")
    assert "methods 4 IG, IG-SG, IG-SQ, GB" in words
    assert "controls 5 random, edges, center, blurred, inverted" in words
    assert f"{POINTS} of {POINTS} points are missing from runs/plan" in words
    assert "maps 8 8 " in words
    assert f"points {POINTS} {POINTS} " in words
    assert "24 images; one process of 1 thread" in words
    assert not (project / "runs").exists()


PICKY = """
def maps(model, batch, key):
    if 17 in batch.ids.tolist():
        raise RuntimeError("cannot explain image 17")
    return batch.images.mean(dim=1)
"""


def test_an_item_that_fails_is_recorded_and_the_rest_is_computed(project):
    write(project / "picky.py", PICKY)
    plan = write(
        project / "failing.toml",
        (project / "plan.toml").read_text().replace('GB = "gb"', 'picky = "picky:maps"').replace("[0, 1]", "[0]"),
    )
    result = run(project, "failing", plan=plan, code=1)
    assert "1 failed: roadworthy status failing" in flat(result.stdout)
    words = output_of(project, "status", "failing")
    assert "failed 1" in words
    assert "RuntimeError: cannot explain image 17" in words
    # Of the 3 blocks only the one with image 17 lacks the maps of one method, and what needs them: 12 predictions.
    curve = 2 * 2 * 3
    assert len(stamps(project / "failing")) == 3 + (8 * 3 - 1) + (8 * 3 - 1) * curve
    assert "picky" not in output_of(project, "show", "failing")
    # Once the method is repaired, nothing is called failed any more.
    write(project / "picky.py", PICKY.replace("17 in", "99 in"))
    run(project, "failing", plan=plan)
    assert "pending 0 failed 0" in output_of(project, "status", "failing")


def test_a_method_that_always_fails_stops_the_run_before_anything_is_computed(project):
    write(
        project / "broken.py", "def maps(model, batch, key):\n    return batch.images[:, 0, :-1, :-1] * float('nan')\n"
    )
    text = (project / "plan.toml").read_text().replace('GB = "gb"', 'broken = "broken:maps"')
    plan = write(project / "broken.toml", text)
    assert "broken" in flat(run(project, "broken", plan=plan, code=1).stderr)
    assert stamps(project / "broken") == {}


def test_two_runs_cannot_write_to_one_directory_at_once(project, store):
    with RunDirectory(store).locked():
        assert "in use by another run" in flat(run(project, store, code=1).stderr)


@pytest.mark.parametrize("kind", ["provenance.json", "trials"])
def test_a_run_directory_of_the_old_format_is_refused_by_every_command(project, tmp_path, kind):
    old = tmp_path / "old"
    old.mkdir()
    shutil.copy(project / "plan.toml", old)
    if kind == "trials":
        (old / "trials").mkdir()
    else:
        (old / "provenance.json").write_text("{}")
    plan, before = project / "plan.toml", sorted(old.rglob("*"))
    for words, code in (
        (("run", plan, "--store", old), 1),
        (("run", plan, "--store", old, "--dry-run"), 1),
        (("status", old), 1),
        (("show", old), 1),
        (("report", old, "-o", tmp_path / "page.html"), 1),
        (("figures", old, "--out", tmp_path / "figures"), 1),
        (("export", old, tmp_path / "table.csv"), 1),
        (("audit", old), 1),
        (("audit", plan, "--store", old), 1),
        (("merge", old, "--into", tmp_path / "merged"), 1),
        (("diff", old, old), 2),
    ):
        words_shown = output_of(project, *words, code=code)
        assert "old format" in words_shown, words
        assert "old" in words_shown
    assert sorted(old.rglob("*")) == before
