"""GAIN by the command line and in the lab book: trained, killed, gone on with, used."""

import signal
import subprocess
import sys
import textwrap
import time

import pandas as pd
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file

import gains
import worlds
from commands import flat, told
from roadworthy.core.random import Key
from roadworthy.core.types import Batch
from roadworthy.experiments import runner
from roadworthy.experiments.executors.local import Local
from roadworthy.experiments.plans.reading import read_plan
from roadworthy.experiments.stores.run_directory import Store
from roadworthy.imputers import Gain

PLAN = """
[data]
name = "folder"
root = "pictures/test"
[train]
root = "pictures/train"
[gain]
epochs = 6
batch_size = 8
width = 4
blocks = 1
validation = 0.25
[model]
factory = "own_model:build"
[methods]
IG = { name = "ig", steps = 2 }
[evaluation]
orders = ["morf"]
imputers = ["fixed", "gain"]
fractions = [0.3, 0.6]
controls = []
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A user's folder: pictures to train and to test, a model with weights, a plan with a GAIN to be trained."""
    root = tmp_path_factory.mktemp("gain")
    world = worlds.quadrants(n=52)
    for row, (image, label) in enumerate(zip(world.images, world.labels.tolist(), strict=True)):
        folder = root / "pictures" / ("train" if row < 40 else "test") / f"class {label}"
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray((image.permute(1, 2, 0) * 255).byte().numpy()).save(folder / f"{row:02}.png")
    (root / "own_model.py").write_text(
        textwrap.dedent("""
        from torch import manual_seed
        from roadworthy.models import small_cnn

        def build():
            manual_seed(0)
            return small_cnn(4, channels=3, width=4)
        """)
    )
    (root / "plan.toml").write_text(PLAN)
    return root


def run(project, store, plan="plan.toml"):
    target = Store(project / store)
    return runner.run(read_plan(project / plan), target, Local(1), lambda event: None, lambda work, complaints: None)


@pytest.fixture(scope="module")
def weights(project):
    path = project / "weights" / "gain.safetensors"
    said = flat(told("gain", "train", project / "plan.toml", "--out", path))
    assert "imputation MSE" in said
    assert "reconstruction error" in said
    assert "Imputation MSE on 12 images" in said
    return path


def test_a_trained_gain_has_its_weights_its_curve_and_a_table_of_errors(weights):
    curve = pd.read_csv(weights.with_suffix(".curve.csv"))
    assert list(curve) == ["epoch", "discriminator", "adversarial", "reconstruction", "imputation"]
    assert list(curve["epoch"]) == list(range(6))
    assert torch.equal(load_file(weights)["curve"], torch.tensor(curve.to_numpy()))
    images = worlds.quadrants(n=2).images
    batch = Batch(torch.arange(2), images, torch.zeros(2, dtype=torch.int64))
    assert torch.isfinite(Gain.load(weights)(batch, worlds.masks(2, 12, 12, 0.5), Key(0))).all()


def test_killed_and_resumed_it_ends_with_the_same_curve_and_weights(project, weights):
    path = project / "killed" / "gain.safetensors"
    checkpoint = path.with_name("gain.safetensors.checkpoint")
    words = ["gain", "train", str(project / "plan.toml"), "--out", str(path), "--epochs", "500"]
    process = subprocess.Popen([sys.executable, "-m", "roadworthy", *words])
    while process.poll() is None and not checkpoint.exists():
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not path.exists()
    done = len(load_file(checkpoint)["gain"])
    if done > 6:
        pytest.skip(f"{done} epochs were done before the kill: this machine is too quick for this test")
    told("gain", "train", project / "plan.toml", "--out", path)
    assert path.read_bytes() == weights.read_bytes()
    assert path.with_suffix(".curve.csv").read_bytes() == weights.with_suffix(".curve.csv").read_bytes()


def test_in_the_lab_book_the_training_is_one_item_and_the_file_of_the_store_is_a_gain(project, weights):
    left = run(project, "store")
    # 1 map, 1 training, 2 imputers × fractions 0, .3, .6
    assert (left.total, left.missing) == (1 + 1 + 6, 0)
    [model] = (project / "store" / "models").iterdir()
    stored, trained = load_file(model), load_file(weights)
    assert stored.keys() == trained.keys()
    assert all(torch.equal(stored[name], trained[name]) for name in stored)  # the same training, by either door
    before = {path: path.stat().st_mtime_ns for path in (project / "store").glob("*/*.safetensors")}
    assert run(project, "store").missing == 0
    assert before == {path: path.stat().st_mtime_ns for path in (project / "store").glob("*/*.safetensors")}
    (project / "loaded.toml").write_text(loaded_plan(project, "weights/gain.safetensors"))
    run(project, "loaded", "loaded.toml")
    first, second = (Store(project / name).predictions() for name in ("store", "loaded"))
    assert first.keys() == second.keys()
    assert all((first[point].probability == second[point].probability).all() for point in first)


def loaded_plan(project, path):
    """The plan with weights from a file, and no training."""
    text = (project / "plan.toml").read_text()
    start, end = text.index("[train]"), text.index("[model]")
    return text[:start] + text[end:].replace('"gain"]', f'{{ name = "gain", weights = "{path}" }}]')


def test_a_plan_with_a_gain_is_checked_with_its_training(project):
    said = flat(told("plan", "check", project / "plan.toml"))
    for row in ("maps 1 1", "points 6 6", "trainings 1 1"):
        assert row in said


def test_a_search_writes_the_table_of_alpha_and_hint(project):
    out = project / "search.csv"
    grid = ["--alpha", 1, "--alpha", 10, "--hint", 0.1, "--hint", 0.5, "--epochs", 1]
    said = flat(told("gain", "search", project / "plan.toml", "--out", out, *grid))
    assert "hint 0.1" in said
    table = pd.read_csv(out)
    assert list(table[["alpha", "hint"]].itertuples(index=False, name=None)) == [
        (1, 0.1),
        (1, 0.5),
        (10, 0.1),
        (10, 0.5),
    ]
    assert table["imputation"].between(0, 1).all()


def test_what_a_gain_must_not_have_is_refused_before_training(project):
    text = (project / "plan.toml").read_text()
    (project / "same.toml").write_text(text.replace("pictures/train", "pictures/test"))
    for words in (
        ("gain", "train", project / "same.toml"),
        ("run", project / "same.toml", "--store", project / "same"),
    ):
        assert "12 of 12 test images are train images too" in flat(told(*words, code=1))
    (project / "small.toml").write_text(loaded_plan(project, gains.file((3, 8, 8))))
    run(project, "small", "small.toml")
    failed = [failure["traceback"] for failure in Store(project / "small").failures().values()]
    assert failed
    assert all(
        "trained on images of (channels, height, width) (3, 8, 8), these are (3, 12, 12)" in one for one in failed
    )
    (project / "none.toml").write_text(loaded_plan(project, "nowhere.safetensors"))
    assert "evaluation.imputers: gain: no GAIN at" in flat(told("plan", "check", project / "none.toml", code=1))
