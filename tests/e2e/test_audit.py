"""`roadworthy audit` on a plan: killed and resumed, looked at again, one part alone, and what cannot be audited."""

from io import StringIO

import numpy as np
import pandas as pd
import pytest

import roadworthy as rw
import worlds
from commands import contents, flat, invoke, killed_when, output_of, stamps
from projects import save_images, write

PLAN = """
[data]
name = "folder"
root = "{images}"
[model]
factory = "my_model:Sides"
[methods]
edges = "edges"
gradient = "gradient"
[evaluation]
self_test = false
imputers = ["fixed", "linear"]
fractions = [0.5]
controls = []
"""

MODEL = """
import torch

class Sides(torch.nn.Module):
    def forward(self, images):
        half = images.shape[-1] // 2
        return torch.stack([images[..., :half].mean(dim=(1, 2, 3)), images[..., half:].mean(dim=(1, 2, 3))], 1)
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    root = tmp_path_factory.mktemp("audited")
    save_images(root / "images", worlds.sides(n=40), ("left", "right"))
    write(root / "my_model.py", MODEL)
    write(root / "plan.toml", PLAN.format(images="images"))
    return root


def words(*target):
    return "audit", *target, "--fraction", 0.2, "--jobs", 1


@pytest.fixture(scope="module")
def uninterrupted(project):
    """What the audit prints; its items are in the run directory `uninterrupted`."""
    output = invoke(project, *words("plan.toml", "--store", "uninterrupted")).stdout
    # A baseline and 2 maps; masks and their learning curve: 2 methods at 2 shares (20 % in MoRF and in LeRF);
    # 2 detectors, each on the masks of 2 methods, and with a reader of each; geometry of 2 methods.
    assert len(contents(project / "uninterrupted")) == 1 + 2 + 2 * 4 + 2 + 2 * 4 + 2
    return output


def test_conclusions_are_printed_and_all_tables_are_written(project, uninterrupted):
    assert "Does the removed region give the class away?" in flat(uninterrupted)
    assert "found" in uninterrupted
    tables = {path.stem: pd.read_csv(path) for path in (project / "uninterrupted" / "audit").iterdir()}
    assert set(tables) == {"masks", "leakage", "detection", "geometry", "conclusions"}
    assert len(tables["masks"]) == 2 * 2
    assert len(tables["detection"]) == 2 * (2 + 2 * 2)  # per imputer: scatter, blobs, 2 methods in 2 orders
    assert len(tables["conclusions"]) == 2 * 2 * 2
    assert np.isfinite(tables["masks"]["accuracy"]).all()
    assert len(tables["geometry"]) == 2 * 2
    assert tables["geometry"]["gamma"].between(0.05, 1).all()


def test_the_same_audit_in_memory_has_the_same_tables(project, uninterrupted):
    comparison = rw.compare(
        worlds.Sides(), rw.datasets.ImageFolder(project / "images"), {"edges": "edges", "gradient": "gradient"},
        imputers=["fixed", "linear"], fractions=(0.5,), controls=(), progress=False,
    )  # fmt: skip
    tables = comparison.audit(fractions=(0.2,), progress=False).tables
    for name in ("masks", "leakage", "detection", "geometry", "conclusions"):
        stored = pd.read_csv(project / "uninterrupted" / "audit" / f"{name}.csv")
        here = pd.read_csv(StringIO(tables[name].to_csv(index=False)))
        rows = [column for column in ("imputer", "masks", "method", "order") if column in here]
        # The same networks and the same arithmetic; CSV files hold every digit.
        pd.testing.assert_frame_equal(
            stored.sort_values(rows, ignore_index=True), here.sort_values(rows, ignore_index=True), rtol=1e-6
        )


def test_killed_and_resumed_it_ends_with_the_same_bytes(project, uninterrupted):
    root, total = project / "killed", len(contents(project / "uninterrupted"))
    killed_when(lambda: len(stamps(root)) >= 6, project, *words("plan.toml", "--store", "killed"))
    before = stamps(root)
    assert 6 <= len(before) < total
    invoke(project, *words("plan.toml", "--store", "killed"))
    assert contents(root) == contents(project / "uninterrupted")
    assert stamps(root).items() >= before.items()  # nothing was computed twice


def test_an_audit_is_shown_again_without_its_data(project, uninterrupted):
    (project / "images").rename(project / "elsewhere")
    before = stamps(project / "uninterrupted")
    try:
        assert invoke(project, *words("uninterrupted")).stdout == uninterrupted
    finally:
        (project / "elsewhere").rename(project / "images")
    assert stamps(project / "uninterrupted") == before


def test_a_run_directory_finds_the_data_of_its_plan_when_more_is_asked_for(project, uninterrupted):
    invoke(project, "merge", "uninterrupted", "--into", "more")
    invoke(project, *words("more"), "--fraction", 0.4, "--only", "masks")
    assert set(pd.read_csv(project / "more" / "audit" / "masks.csv")["fraction"]) == {0.2, 0.4}


def test_one_part_alone_leaves_the_tables_of_the_others_in_place(project):
    invoke(project, *words("plan.toml", "--store", "parts", "--only", "geometry"))
    # A baseline, 2 maps and the geometry of 2 methods: nothing was trained.
    assert len(contents(project / "parts")) == 1 + 2 + 2
    assert [path.stem for path in (project / "parts" / "audit").iterdir()] == ["geometry"]
    geometry = (project / "parts" / "audit" / "geometry.csv").read_bytes()
    invoke(project, *words("parts", "--only", "masks"))
    assert (project / "parts" / "audit" / "geometry.csv").read_bytes() == geometry
    assert len(contents(project / "parts")) == 5 + 2 * 2 * 2  # with the learning curves


def test_what_cannot_be_audited_is_an_error_with_the_cure(project):
    save_images(project / "same", worlds.sides(n=12), ("left", "left"))
    write(project / "one.toml", PLAN.format(images="same"))
    for target, cure in (
        (("one.toml", "--store", "one"), "at least two classes"),
        (("plan.toml",), "--store runs/plan"),
        (("nowhere",), "nowhere does not exist"),
        (("images",), "is not the run directory of a plan"),
        (("images", "--store", "x"), "give a plan and its run directory"),
    ):
        assert cure in output_of(project, *words(*target), code=1)
