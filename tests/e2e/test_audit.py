"""`roadworthy audit` as users do it: a plan, a kill, a resume, a second look; wrong input said."""

import signal
import subprocess
import sys
import textwrap
import time
from io import StringIO

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from typer.testing import CliRunner

import roadworthy as rw
import worlds
from commands import contents
from roadworthy.cli.app import app

PLAN = """
[data]
name = "folder"
root = "{pictures}"
[model]
factory = "my_model:build"
[methods]
edges = "edges"
gradient = "gradient"
[evaluation]
imputers = ["fixed", "linear"]
fractions = [0.5]
controls = []
"""


def pictures(root, world, classes):
    for row, (image, label) in enumerate(zip(world.images, world.labels.tolist(), strict=True)):
        folder = root / classes[label]
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray((image.expand(3, -1, -1).permute(1, 2, 0) * 255).byte().numpy()).save(folder / f"{row:02}.png")


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    root = tmp_path_factory.mktemp("audited")
    pictures(root / "pictures", worlds.sides(n=40), ("left", "right"))
    (root / "my_model.py").write_text(
        textwrap.dedent("""
        import torch

        class Sides(torch.nn.Module):
            def forward(self, images):
                half = images.shape[-1] // 2
                return torch.stack([images[..., :half].mean(dim=(1, 2, 3)), images[..., half:].mean(dim=(1, 2, 3))], 1)

        def build():
            return Sides()
        """)
    )
    (root / "plan.toml").write_text(PLAN.format(pictures="pictures"))
    return root


def command(*words):
    return [sys.executable, "-m", "roadworthy", "audit", *words, "--fraction", "0.2"]


def audit(project, *words):
    return subprocess.run(command(*words), cwd=project, capture_output=True, text=True)


@pytest.fixture(scope="module")
def unbroken(project):
    result = audit(project, "plan.toml", "--store", "unbroken", "--jobs", "1")
    assert result.returncode == 0, result.stdout + result.stderr
    found = contents(project / "unbroken")
    # 2 maps; masks: 2 methods × 2 shares (MoRF and LeRF at 20 %); 2 predictors; detection: 2 imputers × 2 methods;
    # geometry: 2 methods
    assert len(found) == 2 + 4 + 2 + 4 + 2
    return result.stdout


def test_a_plan_is_audited_maps_and_all_and_tables_are_printed_and_written(project, unbroken):
    assert "PointPredictions" in unbroken
    assert "leak" in unbroken.partition("All columns")[0]
    tables = {path.stem: pd.read_csv(path) for path in (project / "unbroken" / "audit").iterdir()}
    assert set(tables) == {"masks", "detection", "geometry", "conclusions"}
    assert len(tables["masks"]) == 2 * 2
    assert len(tables["detection"]) == 2 * (2 + 2 * 2)  # per imputer: scatter, blobs, 2 methods in 2 orders
    assert len(tables["predictions"]) == 2 * 2 * 2
    assert np.isfinite(tables["masks"]["accuracy"]).all()
    assert len(tables["geometry"]) == 2 * 2
    assert tables["geometry"]["gamma"].between(0.05, 1).all()


def test_the_same_audit_in_memory_has_the_same_tables(project, unbroken):
    """Nothing of it is shared but the measures: here nothing is stored, and images are taken one method at a time."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as each item of a plan does
    try:
        comparison = rw.compare(
            worlds.Sides(), rw.datasets.ImageFolder(project / "pictures"), {"edges": "edges", "gradient": "gradient"},
            imputer=["fixed", "linear"], fractions=(0.5,), controls=(), progress=False,
        )  # fmt: skip
        tables = comparison.audit_tables(fractions=(0.2,), progress=False)
    finally:
        torch.set_num_threads(threads)
    for name in ("masks", "detection", "geometry", "conclusions"):
        stored = pd.read_csv(project / "unbroken" / "audit" / f"{name}.csv")
        here = pd.read_csv(StringIO(tables[name].to_csv(index=False)))
        rows = [column for column in ("imputer", "masks", "method", "order") if column in here]
        # Same networks, same arithmetic; the file holds every digit.
        pd.testing.assert_frame_equal(
            stored.sort_values(rows, ignore_index=True), here.sort_values(rows, ignore_index=True), rtol=1e-6
        )


def test_killed_and_resumed_it_ends_with_the_same_bytes(project, unbroken):
    root = project / "killed"
    for goal in (3, 7):
        process = subprocess.Popen(command("plan.toml", "--store", "killed", "--jobs", "1"), cwd=project)
        while process.poll() is None and len(contents(root)) < goal:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert goal <= len(contents(root)) < 14  # the kills were real
    assert audit(project, "plan.toml", "--store", "killed", "--jobs", "1").returncode == 0
    assert contents(root) == contents(project / "unbroken")


def test_a_store_is_looked_at_again_without_its_data(project, unbroken):
    (project / "pictures").rename(project / "elsewhere")
    try:
        again = audit(project, "unbroken")
    finally:
        (project / "elsewhere").rename(project / "pictures")
    assert again.returncode == 0, again.stderr
    assert again.stdout == unbroken


def test_a_store_finds_the_data_of_its_plan_when_there_is_more_to_do(project, unbroken):
    more = subprocess.run(
        [*command("unbroken", "--jobs", "1"), "--fraction", "0.4"], cwd=project, capture_output=True, text=True
    )
    assert more.returncode == 0, more.stdout + more.stderr
    assert set(pd.read_csv(project / "unbroken" / "audit" / "masks.csv")["fraction"]) == {0.2, 0.4}


def test_a_single_question_is_answered_alone_and_leaves_other_answers_in_place(project):
    first = audit(project, "plan.toml", "--store", "asked", "--only", "geometry", "--jobs", "1")
    assert first.returncode == 0, first.stdout + first.stderr
    # 2 maps and the geometry of 2 methods: nothing was trained.
    assert len(contents(project / "asked")) == 4
    assert [path.stem for path in (project / "asked" / "audit").iterdir()] == ["geometry"]
    geometry = (project / "asked" / "audit" / "geometry.csv").read_bytes()
    then = audit(project, "asked", "--only", "masks", "--jobs", "1")
    assert then.returncode == 0, then.stdout + then.stderr
    assert (project / "asked" / "audit" / "geometry.csv").read_bytes() == geometry
    assert len(contents(project / "asked")) == 8  # 2 methods × 2 shares more


def test_what_cannot_be_audited_is_said_in_one_line(project, monkeypatch):
    monkeypatch.chdir(project)
    pictures(project / "same", worlds.sides(n=12), ("left", "left"))
    (project / "one.toml").write_text(PLAN.format(pictures="same"))
    for words, cure in (
        (("one.toml", "--store", "one"), "at least two classes"),
        (("plan.toml",), "--store runs/plan"),
        (("nowhere",), "nowhere does not exist"),
        (("pictures",), "is no store with a plan"),
        (("pictures", "--store", "x"), "or a store alone"),
    ):
        result = CliRunner().invoke(app, ["audit", *words])
        assert result.exit_code == 1
        assert "Traceback" not in result.output
        assert cure in " ".join(result.output.split())
