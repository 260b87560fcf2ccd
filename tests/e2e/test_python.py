"""Runs that are started from Python, and what the commands make of them."""

import json
from dataclasses import replace

import pytest

import roadworthy as rw
import worlds
from commands import contents, invoke, output_of, stamps
from projects import QUADRANTS, save_images, write
from roadworthy.core.errors import RoadworthyError


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    root = tmp_path_factory.mktemp("python")
    save_images(root / "images", worlds.quadrants(n=16), QUADRANTS)
    write(
        root / "plan.toml",
        """
        [data]
        name = "folder"
        root = "images"
        [model]
        factory = "worlds:Quadrants"
        [methods]
        gradient = "gradient"
        "i x g" = "input-x-gradient"
        [evaluation]
        self_test = false
        fractions = [0.3, 0.6]
        controls = ["random"]
        """,
    )
    return root


@pytest.fixture(scope="module")
def comparison(project):
    return rw.run(project / "plan.toml", store=project / "run", progress=False)


@pytest.fixture(scope="module")
def saved(comparison, project):
    return comparison.save(project / "saved")


def manifest_of(folder):
    return json.loads((folder / "manifest.json").read_text())


def test_run_writes_the_plan_and_the_manifest_of_its_run_directory(comparison, project):
    assert (project / "run" / "plan.toml").read_bytes() == (project / "plan.toml").read_bytes()
    manifest = manifest_of(project / "run")
    assert manifest["kind"] == "plan"
    assert {"versions", "machine", "fingerprints", "durations", "date"} <= manifest.keys()
    assert manifest["durations"].keys() == {path.stem for path in stamps(project / "run")}
    assert manifest["cpu_seconds"].keys() == manifest["durations"].keys()
    assert all(seconds > 0 for seconds in manifest["cpu_seconds"].values())


def test_the_commands_read_it(comparison, project, tmp_path):
    assert f"done {len(stamps(project / 'run'))} pending 0 failed 0" in output_of(project, "status", "run")
    words = output_of(project, "show", "run")
    assert all(name in words for name in ("gradient", "i x g", "random ◦"))
    output_of(project, "report", "run", "-o", tmp_path / "report.html")
    assert "worlds:Quadrants" in (tmp_path / "report.html").read_text()


def test_the_command_line_gives_the_same_bytes(comparison, project):
    invoke(project, "run", "plan.toml", "--store", "by command", "--jobs", 1)
    assert contents(project / "by command") == contents(project / "run")


def test_a_plan_can_be_given_as_an_object_but_not_changed(comparison, project):
    plan = rw.read_plan(project / "plan.toml")
    before = stamps(project / "run")
    again = rw.run(plan, store=project / "run", progress=False)
    assert again.ranking().equals(comparison.ranking())
    assert stamps(project / "run") == before
    with pytest.raises(RoadworthyError, match="in its file"):
        rw.run(replace(plan, seeds=(1,)), store=project / "changed", progress=False)


def test_load_gives_the_same_tables(comparison, project):
    loaded = rw.load(project / "run")
    assert loaded.ranking().equals(comparison.ranking())
    assert loaded.per_image().equals(comparison.per_image())


def test_a_saved_comparison_is_not_mistaken_for_the_run_of_a_plan(comparison, saved, project, tmp_path):
    assert manifest_of(saved)["kind"] == "comparison"
    assert rw.load(saved).ranking().equals(comparison.ranking())
    assert "gradient" in output_of(project, "show", "saved")
    for words in (
        ("status", "saved"),
        ("audit", "saved"),
        ("audit", "plan.toml", "--store", "saved"),
        ("merge", "saved", "--into", tmp_path / "merged"),
        ("merge", "run", "--into", "saved"),
        ("run", "plan.toml", "--store", "saved"),
        ("run", "plan.toml", "--store", "saved", "--dry-run"),
    ):
        assert "a plan" in output_of(project, *words, code=1), words
    assert manifest_of(saved)["kind"] == "comparison"
    assert rw.load(saved).ranking().equals(comparison.ranking())


def test_a_comparison_is_not_saved_into_a_run_directory(comparison, project):
    with pytest.raises(RoadworthyError, match="already holds results"):
        comparison.save(project / "run")
    assert manifest_of(project / "run")["kind"] == "plan"
