"""`roadworthy figures`: what a run directory can show is drawn, the rest is listed with the reason."""

import pytest
from PIL import Image

import roadworthy as rw
import worlds
from commands import flat, invoke, output_of
from projects import QUADRANTS, save_images, write


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    root = tmp_path_factory.mktemp("figures")
    save_images(root / "images", worlds.quadrants(n=24), QUADRANTS)
    write(
        root / "plan.toml",
        """
        [data]
        name = "folder"
        root = "images"
        [model]
        factory = "worlds:Quadrants"
        [methods]
        IG = { name = "ig", steps = 3 }
        grad = "gradient"
        [evaluation]
        self_test = false
        imputers = ["fixed", "linear"]
        fractions = [0.2, 0.5, 0.8]
        controls = ["random"]
        """,
    )
    invoke(root, "run", "plan.toml", "--store", "run", "--jobs", 1)
    return root


@pytest.fixture(scope="module")
def first(project):
    """The figures of the run, drawn once."""
    return invoke(project, "figures", "run", "--out", "figures").stdout


def test_figures_are_drawn_and_what_is_missing_is_listed_with_its_reason(project, first):
    names = {path.name for path in (project / "figures").iterdir()}
    stems = (
        "curves-all-linear", "methods-no-retrain-fixed", "information", "modified-data", "imputations", "examples",
        "headline-no-retrain", "ranking-no-retrain-linear", "ranks-by-imputer", "agreement-removed", "agreement-kept",
        "critical-difference-no-retrain-fixed",
    )  # fmt: skip
    for stem in stems:
        assert {f"{stem}.pdf", f"{stem}.svg", f"{stem}.png"} <= names
    assert {"agreement.tex", "accuracies-ig.tex", "runtimes.tex"} <= names
    skipped = [line for line in first.splitlines() if line.startswith("skipped ")]
    assert len(skipped) == 6  # four need an audit, two need retraining
    assert sum("roadworthy audit run" in line for line in skipped) == 4
    svg = (project / "figures" / "ranking-no-retrain-linear.svg").read_text()
    assert ">Imputed with linear, no retraining, 24 images</text>" in svg
    assert b"/FontFile2" in (project / "figures" / "ranking-no-retrain-linear.pdf").read_bytes()  # TrueType
    with Image.open(project / "figures" / "modified-data.png") as picture:
        assert picture.width > 900


@pytest.mark.slow
def test_figures_that_are_drawn_again_have_the_same_bytes(project, first):
    again = invoke(project, "figures", "run", "--plan", "plan.toml", "--out", "again").stdout
    assert again.splitlines()[:-1] == first.splitlines()[:-1]
    for path in (project / "figures").iterdir():
        assert path.read_bytes() == (project / "again" / path.name).read_bytes(), path.name


def test_without_the_images_only_the_pictures_are_skipped(project):
    (project / "images").rename(project / "moved")
    try:
        words = flat(invoke(project, "figures", "run", "--out", "elsewhere", "--method", "grad").stdout)
    finally:
        (project / "moved").rename(project / "images")
    assert "skipped modified-data: data: " in words
    assert "--plan PLAN" in words
    assert not (project / "elsewhere" / "modified-data.png").exists()
    assert (project / "elsewhere" / "curves-all-linear.pdf").exists()


def test_an_unknown_method_is_refused_with_the_names_that_exist(project):
    words = output_of(project, "figures", "run", "--method", "XX", code=1)
    assert "'XX'" in words
    assert "IG, grad" in words


def test_a_saved_comparison_has_figures_too(tmp_path):
    world = worlds.quadrants(n=24)
    maps = {"truth": world.truth, "none": world.truth * 0}
    comparison = rw.compare(
        world.model, (world.images, world.labels), maps, fractions=(0.2, 0.5), controls=("random",), progress=False
    )
    comparison.save(tmp_path / "saved")
    words = output_of(tmp_path, "figures", "saved")
    assert "skipped modified-data: a saved comparison holds no images" in words
    assert (tmp_path / "figures" / "curves-all-linear.pdf").exists()
    assert "0 of" in output_of(tmp_path, "diff", "saved", "saved", "--fail-on", "rank-change")
