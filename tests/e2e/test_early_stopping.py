"""A plan that stops as soon as its methods are ranked, killed and resumed, and what the commands show of it."""

import re

import pytest

import worlds
from commands import contents, flat, invoke, killed_when, output_of, stamps
from projects import QUADRANTS, QUADRANTS_MODEL, save_images, write
from roadworthy import statistics
from roadworthy.experiments.run import load

IMAGES = 160


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """Images of bright discs. A method that finds the disc and one that finds the background differ at once."""
    root = tmp_path_factory.mktemp("early stopping")
    save_images(root / "images", worlds.quadrants(n=IMAGES), QUADRANTS)
    write(root / "my_model.py", QUADRANTS_MODEL)
    write(
        root / "mine.py",
        """
        def bright(model, batch, key):
            return batch.images.mean(dim=1)

        def dark(model, batch, key):
            return -batch.images.mean(dim=1)
        """,
    )
    write(
        root / "plan.toml",
        """
        [data]
        name = "folder"
        root = "images"
        [model]
        factory = "my_model:Quadrants"
        [methods]
        bright = "mine:bright"
        dark = "mine:dark"
        [evaluation]
        self_test = false
        fractions = [0.2, 0.4, 0.6]
        controls = ["blurred", "inverted"]
        until = "ranked"
        margin = 0.05
        [run]
        map_batch_size = 16
        """,
    )
    return root


@pytest.fixture(scope="module")
def uninterrupted(project):
    invoke(project, "run", "plan.toml", "--store", "uninterrupted", "--jobs", 1)
    return contents(project / "uninterrupted")


def evaluated(store):
    """How many images were taken."""
    return len(next(iter(load(store).predictions.values())))


def test_it_stops_before_the_last_image(project, uninterrupted):
    taken = evaluated(project / "uninterrupted")
    assert 16 < taken < IMAGES
    assert "pending 0" in output_of(project, "status", "uninterrupted")
    pairs = load(project / "uninterrupted").pairwise()
    assert not statistics.undecided(pairs[pairs["method_a"].eq("bright") & pairs["method_b"].eq("dark")]).any()


def test_killed_and_resumed_it_stops_at_the_same_image_with_the_same_bytes(project, uninterrupted):
    root, words = project / "killed", ("run", "plan.toml", "--store", "killed", "--jobs", 1)
    killed_when(lambda: len(stamps(root)) >= len(uninterrupted) // 2, project, *words)
    assert len(uninterrupted) // 2 <= len(stamps(root)) < len(uninterrupted)
    invoke(project, *words)
    assert contents(root) == uninterrupted


def test_show_uses_intervals_that_hold_whenever_one_stops(project, uninterrupted):
    comparison = load(project / "uninterrupted")
    rule = comparison.results.stopping
    assert rule is not None
    anytime = comparison.ranking()
    fixed = statistics.ranking(comparison.predictions, comparison.controls)
    lows = {table: frame.set_index(["imputer", "method"])["srg_low"] for table, frame in (("a", anytime), ("f", fixed))}
    assert (lows["a"] < lows["f"][lows["a"].index]).all()  # the price of looking after every block
    words = flat(invoke(project, "show", "uninterrupted").stdout)
    assert f"Early stopping took {evaluated(project / 'uninterrupted')} of {IMAGES} images" in words
    for row in anytime.itertuples():
        assert re.search(rf"{row.srg:.3f} \[{re.escape(f'{row.srg_low:.3f}')}", words), row.method
