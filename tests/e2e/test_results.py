"""Commands that read run directories: show, status, export, merge and diff."""

import json
import re
import shutil

import pandas as pd
import pytest
from safetensors.numpy import save

import roadworthy as rw
import worlds
from commands import contents, flat, invoke, output_of
from projects import save_images, write
from roadworthy.experiments.stores.run_directory import RunDirectory, checksum

PLAN = """
[data]
name = "folder"
root = "images"
[model]
factory = "worlds:Quadrants"
[methods]
IG = { name = "ig", steps = 3, baseline = "black" }
IG-SG = { name = "ig-sg", steps = 3, ig_samples = 2, baseline = "black" }
grad = "gradient"
[evaluation]
self_test = false
imputers = ["fixed", "linear"]
fractions = [0.2, 0.5, 0.8]
controls = ["random"]
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """Images of bright discs, a model that knows them, three plans and their run directories."""
    root = tmp_path_factory.mktemp("results")
    save_images(root / "images", worlds.quadrants(n=40), [f"quadrant {label}" for label in range(4)])
    write(root / "plan.toml", PLAN)
    write(root / "reseeded.toml", PLAN + "seeds = [7]\n")
    write(root / "other.toml", PLAN.replace('grad = "gradient"', 'times = "input-x-gradient"'))
    for plan, store in (("plan", "run"), ("reseeded", "reseeded"), ("other", "other")):
        invoke(root, "run", f"{plan}.toml", "--store", store, "--jobs", 1)
    return root


@pytest.fixture
def store(project, tmp_path):
    """A copy of a complete run directory, to be changed."""
    return shutil.copytree(project / "run", tmp_path / "run")


def predictions_of(store, **point):
    """Paths, headers and arrays of the predictions of these points."""
    directory = RunDirectory(store)
    for path in directory.files("predictions"):
        header, arrays = directory.read_file(path)
        if point.items() <= header["label"].items():
            yield path, header, arrays


def test_show_prints_the_ranking_the_agreement_and_the_conclusion(project):
    words = output_of(project, "show", "run")
    # On bright discs IG-SG and IG from black find the disc, the gradient finds only the quadrant, random nothing.
    linear = words[words.index("linear") :]
    places = [linear.index(name) for name in ("IG-SG", "IG ", "grad", "random ◦")]
    assert places == sorted(places)
    assert re.search(r"Accuracy before removal: \d+\.\d % \[", words)
    assert "CLEAR WINNER IG-SG is clearly better than the other 2 methods and the control random" in words
    assert "Imputed with fixed: NOT YET. " in words  # nothing is found where the mask is visible
    assert "all methods tie" in words  # in LeRF every method keeps the accuracy


def test_a_folder_that_is_not_a_run_directory_is_refused(project):
    for folder in ("images", "nowhere"):
        for command in (("show", folder), ("status", folder), ("export", folder, "table.csv"), ("figures", folder)):
            assert "roadworthy run PLAN" in output_of(project, *command, code=1)


@pytest.mark.parametrize("suffix", ["csv", "json", "parquet"])
def test_export_writes_a_row_per_point_and_image(project, tmp_path, suffix):
    file = tmp_path / f"table.{suffix}"
    rows = 4 * 2 * 2 * 4 * 40  # methods and control, orders, imputers, fractions, images
    assert f"{rows:,} rows would be in" in output_of(project, "export", "run", file, "--dry-run")
    assert not file.exists()
    assert f"{rows:,} rows are in" in output_of(project, "export", "run", file)
    table = getattr(pd, f"read_{suffix}")(file)
    assert len(table) == rows
    assert {"method", "order", "imputer", "fraction", "id", "label", "predicted", "probability"} <= set(table)


def test_a_table_of_an_unknown_kind_is_refused(project):
    assert ".csv" in output_of(project, "export", "run", "table.xls", code=1)


def test_merge_copies_what_is_missing(project, tmp_path):
    into = tmp_path / "merged"
    parts = [shutil.copytree(project / "run", tmp_path / name) for name in ("a", "b")]
    files = sorted((parts[0] / "predictions").glob("*/*"))
    for path in files[::2]:
        path.unlink()
    for path in files[1::2]:
        (parts[1] / path.relative_to(parts[0])).unlink()
    total = len(contents(project / "run"))
    assert f"{total:,} items would be copied" in output_of(project, "merge", *parts, "--into", into, "--dry-run")
    assert not into.exists()
    assert f"{total:,} items were copied" in output_of(project, "merge", *parts, "--into", into)
    assert contents(into) == contents(project / "run")
    assert f"done {total:,} pending 0" in output_of(project, "status", into)
    assert "0 items were copied" in output_of(project, "merge", *parts, "--into", into)


def test_a_run_with_gaps_shows_its_complete_curves(project, store):
    [(lost, _, _)] = predictions_of(store, method="IG", order="morf", imputer="fixed", fraction=0.5)
    lost.unlink()
    result = invoke(project, "show", store)
    assert "1 curve is incomplete and left out" in flat(result.stderr)
    table = json.loads(invoke(project, "diff", "run", store, "--json").stdout)
    assert [(row["method"], row["imputer"], row["score"]) for row in table if row["change"] == "only before"] == [
        ("IG", "fixed", "morf")
    ]
    assert "pending 1" in output_of(project, "status", store)


# ── diff ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_run_does_not_differ_from_itself(project, tmp_path):
    file = tmp_path / "changes.csv"
    words = ("--fail-on", "rank-change", "--fail-on", "score-change", "--out", file)
    # 2 imputers, 3 scores, 3 methods and the random control
    assert "0 of 24 scores changed beyond chance and 0 ranks changed; compared image by image" in output_of(
        project, "diff", "run", "run", *words
    )
    assert pd.read_csv(file)["change"].tolist() == ["none"] * 24


def test_a_worse_method_fails_where_that_is_asked_for(project, store):
    """Every prediction of IG, least relevant first, is made wrong."""
    changed = 0
    for path, header, arrays in predictions_of(store, method="IG", order="lerf"):
        spoil(path, header, {**arrays, "predicted": arrays["labels"] + 1})
        changed += 1
    assert changed == 2 * 3  # imputers, fractions above 0
    assert "worse" in output_of(project, "diff", "run", store)
    output_of(project, "diff", "run", store, "--fail-on", "score-change", code=1)
    output_of(project, "diff", "run", store, "--fail-on", "rank-change", code=1)
    table = json.loads(invoke(project, "diff", "run", store, "--json").stdout)
    worse = {(row["method"], row["score"]) for row in table if row["change"] == "worse"}
    assert worse == {("IG", "lerf"), ("IG", "srg")}


def spoil(path, header, arrays):
    """Write an item with other arrays, and the header that fits them."""
    text = json.dumps({**header, "checksum": checksum(arrays)}, sort_keys=True)
    path.write_bytes(save(arrays, {"item": text}))


def test_another_seed_is_not_a_change_beyond_chance(project):
    words = output_of(project, "diff", "run", "reseeded", "--fail-on", "score-change")
    assert "compared image by image" in words


def test_methods_that_only_one_run_has_are_listed(project):
    words = output_of(project, "diff", "run", "other")
    # 2 imputers × MoRF and LeRF: the first setting, and 3 more
    assert "only before: grad (no-retrain · morf · fixed and 3 more)" in words
    assert "only after: times (no-retrain · morf · fixed and 3 more)" in words


def test_diff_shows_what_changed_and_with_all_the_rest(project, store):
    for path, header, arrays in predictions_of(store, method="IG", order="lerf"):
        spoil(path, header, {**arrays, "predicted": arrays["labels"] + 1})
    lines, whole = (invoke(project, "diff", "run", store, *more).stdout.splitlines() for more in ((), ("--all",)))
    assert len(lines) <= 40  # a screenful
    assert not any("MoRF ↓ · linear" in line for line in lines)  # MoRF is as it was
    assert any("MoRF ↓ · linear" in line for line in whole)
    assert "scores changed beyond chance" in lines[-1] or "scores changed beyond chance" in lines[-2]


def test_runs_that_cannot_be_compared_end_with_exit_code_2(project, tmp_path):
    assert "nowhere is not a run directory" in output_of(project, "diff", "run", "nowhere", code=2)
    world = worlds.quadrants(n=24)
    comparison = rw.compare(
        world.model, (world.images, world.labels), {"mine": world.truth}, controls=(), fractions=(0.5,), progress=False
    )
    comparison.save(tmp_path / "mine")
    # Ids of the folder are sorted by class, those of the array are not: the labels contradict each other.
    assert "data sets differ" in output_of(project, "diff", "run", tmp_path / "mine", code=2)
    assert ".csv" in output_of(project, "diff", "run", "run", "--out", "x.txt", code=2)
