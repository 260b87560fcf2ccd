"""Figures and changes from the command line, on small stores filled by real runs."""

import json
import textwrap

import pandas as pd
import pytest
from PIL import Image

import roadworthy as rw
import worlds
from commands import flat, roadworthy
from roadworthy.experiments.items import Item
from roadworthy.experiments.stores.run_directory import Store

PLAN = """
[data]
name = "folder"
root = "pictures"
[model]
factory = "my_model:build"
[methods]
IG = { name = "ig", steps = 3 }
IG-SG = { name = "ig-sg", steps = 3, ig_samples = 2 }
grad = "gradient"
[evaluation]
imputers = ["fixed", "linear"]
fractions = [0.2, 0.5, 0.8]
controls = ["random"]
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """Pictures of bright discs, the model that knows them by heart, a plan and its store."""
    root = tmp_path_factory.mktemp("findings")
    world = worlds.quadrants(n=40)
    for row, (image, label) in enumerate(zip(world.images, world.labels.tolist(), strict=True)):
        folder = root / "pictures" / f"quadrant {label}"
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray((image.permute(1, 2, 0) * 255).byte().numpy()).save(folder / f"{row:02}.png")
    (root / "my_model.py").write_text(
        textwrap.dedent("""
        from torch import nn

        class Quadrants(nn.Module):
            def forward(self, images):
                return 40 * nn.functional.adaptive_avg_pool2d(images.mean(dim=1, keepdim=True), 2).flatten(1)

        def build():
            return Quadrants()
        """)
    )
    (root / "plan.toml").write_text(PLAN)
    (root / "reseeded.toml").write_text(PLAN + "seeds = [7]\n")
    (root / "fewer.toml").write_text(PLAN.replace('grad = "gradient"', 'times = "input-x-gradient"'))
    for plan, store in (("plan", "run"), ("reseeded", "again"), ("fewer", "other")):
        roadworthy(root, "run", f"{plan}.toml", "--store", store, "--jobs", "1")
    return root


def said(result):
    return flat(result.stdout + result.stderr)


def test_a_store_says_who_can_be_trusted(project):
    words = said(roadworthy(project, "ranking", "run"))
    # On bright discs IG-SG and IG find the disc, the plain gradient knows the quadrant only, random nothing.
    places = [words.index(name, words.index("Imputed with linear")) for name in ("IG-SG", "IG ", "grad", "random ◦")]
    assert places == sorted(places)
    assert "IG-SG ranks first on 40 images" in words
    assert "all methods tie" in words  # every method keeps all in LeRF


def test_a_folder_without_results_cannot_say_who_can_be_trusted(project):
    error = roadworthy(project, "ranking", "pictures", code=1).stderr
    assert "is no store" in error


def test_figures_draws_what_the_store_holds_and_says_what_it_lacks(project):
    result = roadworthy(project, "figures", "run", "--plan", "plan.toml", "--out", "figures")
    names = {path.name for path in (project / "figures").iterdir()}
    for stem in ("curves-ig-linear", "methods-no-retrain-fixed", "information", "modified-data", "imputations"):
        assert {f"{stem}.pdf", f"{stem}.svg", f"{stem}.png"} <= names
    assert {"agreement.tex", "accuracies-ig-sg.tex", "runtimes.tex"} <= names
    skipped = [line for line in result.stdout.splitlines() if line.startswith("skipped ")]
    assert len(skipped) == 6  # four of the audit, two of retraining
    assert sum("roadworthy audit run" in line for line in skipped) == 4
    with Image.open(project / "figures" / "modified-data.png") as picture:
        assert picture.width > 900
    again = roadworthy(project, "figures", "run", "--plan", "plan.toml", "--out", "twice")
    assert again.stdout.splitlines()[:-1] == result.stdout.splitlines()[:-1]
    for path in (project / "figures").iterdir():
        assert path.read_bytes() == (project / "twice" / path.name).read_bytes(), path.name


def test_images_that_cannot_be_reached_cost_only_the_pictures(project):
    (project / "pictures").rename(project / "moved")
    try:
        result = roadworthy(project, "figures", "run", "--out", "elsewhere", "--method", "grad")
    finally:
        (project / "moved").rename(project / "pictures")
    assert "skipped modified-data: data: " in result.stdout
    assert "--plan PLAN" in result.stdout
    assert not (project / "elsewhere" / "modified-data.png").exists()
    assert (project / "elsewhere" / "curves-ig-linear.pdf").exists()
    unknown = roadworthy(project, "figures", "run", "--method", "XX", code=1)
    assert "method 'XX' has no whole curve here" in said(unknown)


def test_a_store_with_gaps_shows_its_whole_curves(project):
    roadworthy(project, "merge", "run", "--into", "gaps")
    lost = next(iter((project / "gaps" / "trials").iterdir()))
    lost.unlink()
    result = roadworthy(project, "figures", "gaps", "--out", "gap-figures")
    assert "gaps: 1 points are missing; curves that lack one are left out" in result.stderr
    table = json.loads(roadworthy(project, "compare-runs", "run", "gaps", "--json").stdout)
    assert sum(row["change"] == "only before" for row in table) == 1


def test_a_saved_comparison_has_figures_too(tmp_path):
    world = worlds.quadrants(n=24)
    maps = {"truth": world.truth, "none": world.truth * 0}
    rw.compare(world.model, (world.images, world.labels), maps, fractions=(0.2, 0.5)).save(tmp_path / "saved")
    result = roadworthy(tmp_path, "figures", "saved")
    assert "skipped modified-data: a saved comparison holds no images" in result.stdout
    assert (tmp_path / "figures" / "curves-all-linear.pdf").exists()
    assert "0 of" in roadworthy(tmp_path, "compare-runs", "saved", "saved", "--fail-on", "rank-change").stdout


def test_a_run_has_not_changed_against_itself(project):
    words = ("--fail-on", "rank-change", "--fail-on", "score-change", "--out", "changes.csv")
    result = roadworthy(project, "compare-runs", "run", "run", *words)
    # 2 imputers, 3 scores, 3 methods and the random control
    assert "0 of 24 scores changed beyond chance and 0 ranks changed; compared image by image" in said(result)
    table = pd.read_csv(project / "changes.csv")
    assert table["change"].tolist() == ["none"] * 24


def test_a_changed_rank_fails_where_it_is_asked_to(project):
    """One curve is made worse by hand: with IG, least relevant first, every answer is now wrong."""
    roadworthy(project, "merge", "run", "--into", "worse")
    store, spoilt = Store(project / "worse"), 0
    for id in store.ids("trial"):
        header, arrays = store.read("trial", id)
        point = header["label"]
        if point["method"] == "IG" and point["order"] == "lerf" and point["fraction"] > 0:
            wrong = {**arrays, "predicted": arrays["labels"] + 1}
            store.write(Item("trial", header["spec"], point), wrong)
            spoilt += 1
    assert spoilt == 2 * 3  # two imputers, three fractions above 0
    result = roadworthy(project, "compare-runs", "run", "worse")
    assert "worse" in result.stdout
    assert "IG" in result.stdout
    roadworthy(project, "compare-runs", "run", "worse", "--fail-on", "score-change", code=1)
    roadworthy(project, "compare-runs", "run", "worse", "--fail-on", "rank-change", code=1)
    table = json.loads(roadworthy(project, "compare-runs", "run", "worse", "--json").stdout)
    changed = {(row["method"], row["score"]) for row in table if row["change"] == "worse"}
    assert changed == {("IG", "lerf"), ("IG", "srg")}


def test_other_noise_is_no_change_beyond_chance(project):
    result = roadworthy(project, "compare-runs", "run", "again", "--fail-on", "score-change")
    assert "compared image by image" in said(result)


def test_what_only_one_run_has_is_listed(project):
    result = roadworthy(project, "compare-runs", "run", "other")
    assert "only before: grad (no-retrain · morf · fixed)" in result.stdout
    assert "only after: times (no-retrain · lerf · linear)" in result.stdout


def test_what_cannot_be_compared_ends_with_exit_code_2(project, tmp_path):
    assert "nowhere is no store" in said(roadworthy(project, "compare-runs", "run", "nowhere", code=2))
    world = worlds.quadrants(n=24)
    one = rw.compare(world.model, (world.images, world.labels), {"mine": world.truth}, controls=(), fractions=(0.5,))
    one.save(tmp_path / "mine")
    apart = roadworthy(project, "compare-runs", "run", str(tmp_path / "mine"), code=2)
    assert "the runs have nothing in common" in said(apart)
    assert "tables are written as .csv" in said(
        roadworthy(project, "compare-runs", "run", "run", "--out", "x.txt", code=2)
    )
