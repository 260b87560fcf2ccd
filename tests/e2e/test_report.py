"""`roadworthy report` on run directories: complete, incomplete, without their data, and on saved comparisons."""

import re
import shutil

import pytest

import roadworthy as rw
import worlds
from commands import invoke, output_of
from projects import QUADRANTS, save_images, write
from roadworthy.experiments.stores.run_directory import RunDirectory


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A user's folder: images, a plan beside them, and a run directory elsewhere."""
    root = tmp_path_factory.mktemp("report")
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
        "gradient" = "gradient"
        "i x g" = "input-x-gradient"
        [evaluation]
        self_test = false
        imputers = ["fixed", "linear"]
        fractions = [0.3, 0.6]
        controls = ["random"]
        """,
    )
    invoke(root, "run", "plan.toml", "--store", "runs/complete", "--jobs", 1)
    return root


@pytest.fixture
def store(project, tmp_path):
    """A copy of the complete run directory, to be changed."""
    return shutil.copytree(project / "runs" / "complete", tmp_path / "store")


def page_of(store, tmp_path):
    page = tmp_path / "page.html"
    assert str(page) in output_of(tmp_path, "report", store, "-o", page)
    return page.read_text()


def remove(store, wanted):
    """Delete the predictions of points for which `wanted(label)` holds; returns how many."""
    directory = RunDirectory(store)
    paths = [path for path in directory.files("predictions") if wanted(directory.read_file(path)[0]["label"])]
    for path in paths:
        path.unlink()
    return len(paths)


def test_a_complete_run_gives_a_complete_page(store, tmp_path):
    page = page_of(store, tmp_path)
    assert "Incomplete." not in page
    assert page.count('<svg class="chart"') == 4  # 2 imputers × 2 orders
    assert page.count('class="example"') == 8  # all images are right; 8 of them are shown
    # The names of the classes come with the data, found through the plan's own folder; examples are from all of them.
    assert all(f", class {name}</h3>" in page for name in QUADRANTS)
    for fact in ("worlds:Quadrants", "Fingerprint of model", "seconds per curve", "[methods]", "Computed in"):
        assert fact in page
    assert str(tmp_path.parent) not in page  # no path of this machine
    assert "Blind controls" in page


def test_an_incomplete_run_gives_a_page_that_lists_what_is_missing(store, tmp_path):
    # Fraction 0 is the baseline, shared by all curves. One method is missing, and the control in LeRF.
    removed = remove(
        store,
        lambda label: label.get("method") == "i x g" or (label.get("method"), label.get("order")) == ("random", "lerf"),
    )
    assert removed == 2 * 2 * 2 + 2 * 2  # orders × imputers × fractions; imputers × fractions
    page = page_of(store, tmp_path)
    assert "12 points are missing, so 6 of the curves are left out of this page" in page
    missing = page.partition('id="missing"')[2].partition("</table>")[0]
    rows = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in missing.split("<tr>")[1:]]
    assert ["i x g", "morf", "fixed", "no-retrain", "model", "pixels", "1", "3"] in rows
    assert sum(row[:1] == ["random"] for row in rows) == 2
    assert "gradient is the only method" in page
    assert "random was not evaluated in all orders" in page


def test_where_every_curve_is_incomplete_nothing_is_ranked_and_the_page_says_so(store, tmp_path):
    removed = remove(store, lambda label: label.get("fraction") == 0.3)
    assert removed == 12  # 3 methods × 2 orders × 2 imputers
    page = page_of(store, tmp_path)
    assert "Nothing can be ranked yet" in page
    assert "12 points are missing, so 12 of the curves are left out" in page
    assert "No examples: nothing is ranked yet." in page


def test_without_the_data_the_page_says_why_there_are_no_examples(project, store, tmp_path):
    elsewhere = project / "elsewhere"
    (project / "images").rename(elsewhere)
    try:
        page = page_of(store, tmp_path)
    finally:
        elsewhere.rename(project / "images")
    assert re.search(r"No examples: data: .*images", page)
    assert page.count('<svg class="chart"') == 4
    assert f"class {QUADRANTS[0]}" in page  # the names of the classes were kept


def test_data_that_have_moved_are_found_through_the_plan(project, store, tmp_path):
    """The run directory remembers where its plan was; that folder is elsewhere now."""
    moved = shutil.copytree(project / "images", tmp_path / "moved" / "images").parent
    shutil.copy(project / "plan.toml", moved)
    (project / "images").rename(project / "elsewhere")
    try:
        output_of(tmp_path, "report", store, "-o", "page.html", "--plan", moved / "plan.toml")
    finally:
        (project / "elsewhere").rename(project / "images")
    assert (tmp_path / "page.html").read_text().count('class="example"') == 8


def test_other_data_in_the_same_place_are_not_shown_as_those_that_were_evaluated(project, store, tmp_path):
    first, last = project / "images" / QUADRANTS[0], project / "images" / "z"
    first.rename(last)  # classes are numbered by name: the first images have other labels now
    try:
        page = page_of(store, tmp_path)
    finally:
        last.rename(first)
    assert re.search(r"No examples: .*not those that were evaluated", page)


def test_a_saved_comparison_gives_a_page_with_its_controls(tmp_path):
    world = worlds.quadrants(n=12)
    data = rw.datasets.Arrays(world.images, world.labels, classes=QUADRANTS)
    maps = {"truth": world.truth, "dark": -world.images.mean(dim=1)}
    rw.compare(world.model, data, maps, fractions=(0.3, 0.6), progress=False).save(tmp_path / "saved")
    page = page_of(tmp_path / "saved", tmp_path)
    assert "No examples: a saved comparison holds no images." in page
    assert "<strong>Quadrants</strong> on <strong>Arrays</strong>" in page
    assert "images: 12" in page
    assert "Blind controls" in page
    assert f">class {QUADRANTS[3]}</th>" in page


def test_a_folder_that_is_not_a_run_directory_is_refused(tmp_path):
    assert "is not the run directory of a plan" in output_of(tmp_path, "report", tmp_path, code=1)
