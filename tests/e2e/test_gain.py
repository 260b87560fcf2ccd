"""GAIN from the command line and in a run: trained, killed and resumed, used."""

import pandas as pd
import pytest
import torch
from safetensors.torch import load_file

import gains
import worlds
from commands import invoke, killed_when, output_of, stamps
from projects import QUADRANTS, save_images, write
from roadworthy.core.random import Key
from roadworthy.core.types import Batch
from roadworthy.experiments.run import load
from roadworthy.imputers import Gain

PLAN = """
[data]
name = "folder"
root = "images/test"
[train]
root = "images/train"
[gain]
epochs = 6
batch_size = 8
width = 4
blocks = 1
validation = 0.25
[model]
factory = "my_model:build"
[methods]
IG = { name = "ig", steps = 2 }
[evaluation]
self_test = false
orders = ["morf"]
imputers = ["fixed", "gain"]
fractions = [0.3, 0.6]
controls = []
"""

MODEL = """
from torch import manual_seed
from roadworthy.models import small_cnn

def build():
    manual_seed(0)
    return small_cnn(4, channels=3, width=4)
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A user's folder: train and test images, a model, a plan with a GAIN to be trained."""
    root = tmp_path_factory.mktemp("gain")
    world = worlds.quadrants(n=52)
    save_images(root / "images" / "train", world, QUADRANTS, range(40))
    save_images(root / "images" / "test", world, QUADRANTS, range(40, 52))
    write(root / "my_model.py", MODEL)
    write(root / "plan.toml", PLAN)
    return root


def run(project, store, plan="plan.toml", code=0):
    return output_of(project, "run", plan, "--store", store, "--jobs", 1, code=code)


@pytest.fixture(scope="module")
def weights(project):
    path = project / "weights" / "gain.safetensors"
    words = output_of(project, "gain", "train", "plan.toml", "--out", path)
    assert "imputation MSE" in words
    assert "reconstruction error" in words
    assert "Imputation MSE on 12 images" in words
    return path


def test_a_trained_gain_has_weights_and_a_training_curve(weights):
    curve = pd.read_csv(weights.with_suffix(".curve.csv"))
    assert list(curve) == ["epoch", "discriminator", "adversarial", "reconstruction", "imputation"]
    assert list(curve["epoch"]) == list(range(6))
    assert torch.equal(load_file(weights)["curve"], torch.tensor(curve.to_numpy()))
    images = worlds.quadrants(n=2).images
    batch = Batch(torch.arange(2), images, torch.zeros(2, dtype=torch.int64))
    assert torch.isfinite(Gain.load(weights)(batch, worlds.masks(2, 12, 12, 0.5), Key(0))).all()


def test_a_training_that_was_killed_ends_with_the_same_curve_and_weights(project, weights):
    path = project / "killed" / "gain.safetensors"
    checkpoint = path.with_name("gain.safetensors.checkpoint")
    # The number of epochs is not part of what a checkpoint is checked for: enough of them to be killed in time.
    killed_when(checkpoint.exists, project, "gain", "train", "plan.toml", "--out", path, "--epochs", 500)
    assert not path.exists()
    done = len(load_file(checkpoint)["gain"])
    if done > 6:
        pytest.skip(f"{done} epochs were done before the kill: this machine is too fast for this test")
    invoke(project, "gain", "train", "plan.toml", "--out", path)
    assert path.read_bytes() == weights.read_bytes()
    assert path.with_suffix(".curve.csv").read_bytes() == weights.with_suffix(".curve.csv").read_bytes()


def test_in_a_run_the_training_is_one_item_and_its_file_is_a_gain(project, weights):
    # A baseline, maps, a training, 2 imputers × fractions 0.3 and 0.6
    assert "7 of 7 items" in run(project, "run")
    [model] = (project / "run" / "models").glob("*/*")
    stored, trained = load_file(model), load_file(weights)
    assert stored.keys() == trained.keys()
    assert all(torch.equal(stored[name], trained[name]) for name in stored)  # the same training as `gain train`
    before = stamps(project / "run")
    run(project, "run")
    assert stamps(project / "run") == before
    write(project / "loaded.toml", loaded_plan(project, "weights/gain.safetensors"))
    run(project, "loaded", "loaded.toml")
    in_run, from_file = (load(project / name).predictions for name in ("run", "loaded"))
    assert in_run.keys() == from_file.keys()
    assert all((in_run[point].probability == from_file[point].probability).all() for point in in_run)


def test_a_gain_that_was_trained_in_a_run_is_compared_with_other_imputers(project, weights):
    run(project, "run")
    output_of(project, "imputers", "compare", "plan.toml", "--fraction", 0.3, "--store", "run")
    assert set(pd.read_csv(project / "imputers" / "imputers.csv")["imputer"]) == {"fixed", "blur", "linear", "gain"}


def loaded_plan(project, path):
    """The plan with weights from a file, and no training."""
    text = (project / "plan.toml").read_text()
    start, end = text.index("[train]"), text.index("[model]")
    return text[:start] + text[end:].replace('"gain"]', f'{{ name = "gain", weights = "{path}" }}]')


def test_a_dry_run_counts_the_training(project):
    words = output_of(project, "run", "plan.toml", "--dry-run")
    for row in ("maps 1 1", "points 6 6", "trainings 1 1"):
        assert row in words


def test_a_search_writes_a_table_of_alpha_and_hint_rate(project):
    grid = ["--alpha", 1, "--alpha", 10, "--hint", 0.1, "--hint", 0.5, "--epochs", 1]
    assert "hint 0.1" in output_of(project, "gain", "search", "plan.toml", "--out", "search.csv", *grid)
    table = pd.read_csv(project / "search.csv")
    assert list(table[["alpha", "hint"]].itertuples(index=False, name=None)) == [
        (1, 0.1),
        (1, 0.5),
        (10, 0.1),
        (10, 0.5),
    ]
    assert table["imputation"].between(0, 1).all()


def test_a_gain_is_not_trained_on_the_images_to_evaluate(project):
    text = (project / "plan.toml").read_text()
    write(project / "same.toml", text.replace("images/train", "images/test"))
    error = "12 of 12 test images are train images too"
    assert error in output_of(project, "gain", "train", "same.toml", code=1)
    assert error in run(project, "same", "same.toml", code=1)


def test_a_gain_for_other_images_or_without_weights_is_refused(project):
    write(project / "small.toml", loaded_plan(project, gains.file((3, 8, 8))))
    error = run(project, "small", "small.toml", code=1)
    assert "(3, 8, 8)" in error
    assert "(3, 12, 12)" in error
    assert stamps(project / "small") == {}
    write(project / "none.toml", loaded_plan(project, "nowhere.safetensors"))
    error = output_of(project, "run", "none.toml", "--dry-run", code=1)
    assert "evaluation.imputers: gain" in error
    assert "nowhere.safetensors" in error
