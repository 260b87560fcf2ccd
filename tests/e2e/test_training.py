"""A plan whose model is still to be trained: its cost, its refusal, its training, stopped and resumed, and its run."""

import pytest

import worlds
from commands import flat, invoke, killed_when, output_of
from projects import QUADRANTS, save_images, write


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    root = tmp_path_factory.mktemp("training")
    world = worlds.quadrants(n=260)
    save_images(root / "images" / "test", world, QUADRANTS, range(60))
    save_images(root / "images" / "train", world, QUADRANTS, range(60, 260))
    write(
        root / "plan.toml",
        """
        [data]
        name = "folder"
        root = "images/test"
        [model]
        name = "small-cnn"
        channels = 3
        classes = 4
        width = 8
        weights = "weights.safetensors"
        [training]
        name = "tiny"
        epochs = 12
        augment = "flip"
        data = { root = "images/train" }
        [methods]
        "IG [8]" = { name = "ig", steps = 8 }
        GB = "gb"
        [evaluation]
        self_test = false
        fractions = [0.5]
        controls = []
        """,
    )
    return root


def test_a_dry_run_shows_the_axes_the_cost_and_that_the_model_is_to_be_trained(project):
    words = output_of(project, "run", "plan.toml", "--dry-run")
    assert "methods 2 IG [8], GB" in words
    assert "fractions 2 0, 0.5" in words
    assert "8 of 8 points are missing from runs/plan" in words  # 2 methods × 2 orders × 2 fractions
    assert "timing a few images ..." in words
    assert "maps 2 2 " in words
    assert "points 8 8 " in words
    assert "the model itself 1 1 " in words
    assert "60 images; one process of 1 thread on this machine; timed with untrained weights" in words
    assert not (project / "runs").exists()


def test_where_the_data_are_missing_the_axes_are_shown_and_the_error_names_the_cure(project):
    text = (project / "plan.toml").read_text().replace('name = "folder"', 'name = "cifar10"')
    write(project / "nodata.toml", text)
    result = invoke(project, "run", "nodata.toml", "--dry-run", code=1)
    assert "methods" in result.stdout
    assert "roadworthy data download cifar10" in flat(result.stderr)


def test_a_training_that_was_killed_ends_with_the_same_bytes_and_then_the_plan_runs(project):
    refusal = output_of(project, "run", "plan.toml", code=1)
    assert "make it with `roadworthy train` and this plan" in refusal
    assert "of 12;" in output_of(project, "train", "plan.toml", "--out", "uninterrupted.safetensors")
    checkpoint = project / "weights.safetensors.checkpoint"
    killed_when(checkpoint.exists, project, "train", "plan.toml")
    assert checkpoint.exists()
    assert not (project / "weights.safetensors").exists()  # the training was interrupted
    output_of(project, "train", "plan.toml")
    assert (project / "weights.safetensors").read_bytes() == (project / "uninterrupted.safetensors").read_bytes()
    output_of(project, "run", "plan.toml", "--jobs", 1)
    words = output_of(project, "run", "plan.toml", "--dry-run")
    assert "0 of 8 points are missing from runs/plan" in words
    assert "timing" not in words
