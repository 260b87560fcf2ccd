"""`roadworthy report` on stores: whole, half done, hardly begun, without their data, and on saved comparisons."""

import re
import shutil
import textwrap

import pytest
from PIL import Image
from typer.testing import CliRunner

import roadworthy as rw
import worlds
from commands import told
from roadworthy.cli.app import app
from roadworthy.experiments.stores.run_directory import Store

CLASSES = ("north-west", "north-east", "south-west", "south-east")


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A user's folder: pictures, a plan beside them, and a store elsewhere."""
    root = tmp_path_factory.mktemp("project")
    world = worlds.quadrants(n=16)
    for row, (image, label) in enumerate(zip(world.images, world.labels.tolist(), strict=True)):
        folder = root / "pictures" / CLASSES[label]
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray((image.permute(1, 2, 0) * 255).byte().numpy()).save(folder / f"{row:02}.png")
    (root / "plan.toml").write_text(
        textwrap.dedent("""
        [data]
        name = "folder"
        root = "pictures"
        [model]
        factory = "worlds:Quadrants"
        [methods]
        "gradient" = "gradient"
        "i x g" = "input-x-gradient"
        [evaluation]
        imputers = ["fixed", "linear"]
        fractions = [0.3, 0.6]
        controls = ["random"]
        """)
    )
    told("run", root / "plan.toml", "--store", root / "runs" / "whole", "--jobs", 1)
    return root


@pytest.fixture
def store(project, tmp_path):
    """A copy of the whole store, to be maltreated."""
    return shutil.copytree(project / "runs" / "whole", tmp_path / "store")


def page_of(folder, tmp_path):
    out = tmp_path / "page.html"
    assert str(out) in told("report", folder, "-o", out).replace("\n", "")
    return out.read_text()


def remove(store, unwanted):
    """Delete the trials whose point is unwanted; how many that were."""
    gone = [id for id in Store(store).ids("trial") if unwanted(Store(store).read("trial", id)[0]["label"])]
    for id in gone:
        Store(store).path("trial", id).unlink()
    return len(gone)


def test_a_whole_store_gives_a_whole_page(store, tmp_path):
    made = page_of(store, tmp_path)
    assert "Not finished" not in made
    assert made.count('<svg class="chart"') == 4  # 2 imputers × 2 orders
    assert made.count('class="example"') == 4
    # The classes' names come with the data, found by the plan's own folder; the pictures are from all of them.
    assert all(f", class {name}</h3>" in made for name in CLASSES)
    for fact in ("worlds:Quadrants", "Fingerprint of data", "seconds per curve", "[methods]", "Computed in"):
        assert fact in made
    assert str(tmp_path.parent) not in made  # no path of this machine
    assert '<span class="tag">control</span>' in made


def test_half_a_store_gives_a_page_that_says_what_is_missing(store, tmp_path):
    # 3 methods × 2 orders × 2 imputers × 3 fractions = 36 points; one method is gone, and LeRF of the control.
    gone = remove(
        store, lambda point: point["method"] == "i x g" or (point["method"], point["order"]) == ("random", "lerf")
    )
    assert gone == 12 + 6
    made = page_of(store, tmp_path)
    assert "18 points are missing, so 6 of the curves are left out of this page" in made
    missing = made.partition('id="missing"')[2].partition("</table>")[0]
    rows = [re.findall(r"<td>(.*?)</td>", row) for row in missing.split("<tr>")[1:]]
    assert ["i x g", "morf", "fixed", "no-retrain", "0", "3"] in rows
    assert sum(row[:1] == ["random"] for row in rows) == 2
    assert "gradient is the only method evaluated on 16 images" in made
    assert "random was not evaluated in all orders" in made


def test_where_every_curve_has_a_hole_nothing_is_ranked_and_the_page_says_so(store, tmp_path):
    gone = remove(store, lambda point: point["fraction"] == 0.3)
    made = page_of(store, tmp_path)
    assert gone == 12
    assert "Nothing can be ranked yet. Of 36 points 24 are there, and no curve is whole." in made
    assert "12 points are missing, so 12 of the curves are left out" in made
    assert "No examples: nothing is ranked yet." in made


def test_without_the_data_the_page_says_why_there_are_no_pictures(project, store, tmp_path):
    away = project / "elsewhere"
    (project / "pictures").rename(away)
    try:
        made = page_of(store, tmp_path)
    finally:
        away.rename(project / "pictures")
    assert re.search(r"No examples: data: .*pictures", made)
    assert made.count('<svg class="chart"') == 4
    assert "class 1" in made  # names of classes are with the data


def test_other_data_at_the_same_place_are_not_passed_off_as_those_that_were_evaluated(project, store, tmp_path):
    first, last = project / "pictures" / CLASSES[0], project / "pictures" / "z"
    first.rename(last)  # the classes are numbered by name: the first pictures have other labels now
    try:
        made = page_of(store, tmp_path)
    finally:
        last.rename(first)
    assert "No examples: the data are not those that were evaluated" in made


def test_a_saved_comparison_gives_a_page_with_its_controls(tmp_path):
    world = worlds.quadrants(n=12)
    data = rw.datasets.Arrays(world.images, world.labels, classes=CLASSES)
    maps = {"truth": world.truth, "dark": -world.images.mean(dim=1)}
    rw.compare(world.model, data, maps, fractions=(0.3, 0.6), progress=False).save(tmp_path / "saved")
    made = page_of(tmp_path / "saved", tmp_path)
    assert "No examples: a saved comparison holds no images." in made
    assert "Model: Quadrants · Data: Arrays · Images: 12" in made
    assert '<span class="tag">control</span>' in made
    assert ">class south-east</th>" in made


def test_a_folder_that_is_no_store_is_refused(tmp_path):
    result = CliRunner().invoke(app, ["report", str(tmp_path)])
    assert result.exit_code == 1
    assert "is no store" in result.stderr.replace("\n", " ")
