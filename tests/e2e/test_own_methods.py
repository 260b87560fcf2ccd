"""A plan with a function of one's own, a method of Captum and precomputed maps."""

import numpy as np
import pytest

import worlds
from commands import contents, flat, invoke
from projects import QUADRANTS, save_images, write
from roadworthy.experiments.stores.run_directory import RunDirectory

MINE = """
import torch

def saliency(model, batch, key):
    images = batch.images.clone().requires_grad_()
    scores = model(images).gather(1, batch.labels[:, None]).sum()
    return torch.autograd.grad(scores, images)[0].sum(dim=1)
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    root = tmp_path_factory.mktemp("own methods")
    world = worlds.quadrants(n=24)
    save_images(root / "images", world, QUADRANTS)
    np.save(root / "maps.npy", world.truth[world.labels.sort(stable=True).indices].numpy())
    write(root / "mine.py", MINE)
    write(
        root / "plan.toml",
        """
        [data]
        name = "folder"
        root = "images"
        [model]
        factory = "worlds:Quadrants"
        [methods]
        mine = "mine:saliency"
        "I x G" = { name = "captum", method = "InputXGradient" }
        truth = { name = "maps", path = "maps.npy" }
        [evaluation]
        self_test = false
        fractions = [0.3, 0.6]
        controls = ["random", "blurred"]
        [run]
        block_size = 12
        """,
    )
    invoke(root, "run", "plan.toml", "--store", "one job", "--jobs", 1)
    return root


def test_one_and_two_jobs_give_the_same_bytes(project):
    items = contents(project / "one job")
    # 2 blocks: a baseline; maps of 3 methods, a control and 2 blurred copies; those in 2 orders at 2 fractions
    assert len(items) == 2 * (1 + 6 + 6 * 2 * 2)
    invoke(project, "run", "plan.toml", "--store", "two jobs", "--jobs", 2)
    assert contents(project / "two jobs") == items


def test_every_method_is_ranked(project):
    words = flat(invoke(project, "show", "one job").stdout)
    assert all(name in words for name in ("mine", "I x G", "truth", "random ◦"))


def test_changed_code_is_new_work_for_its_method_only(project):
    before = contents(project / "one job")
    (project / "mine.py").write_text(MINE.replace(".sum(dim=1)", ".abs().sum(dim=1)"))
    try:
        invoke(project, "run", "plan.toml", "--store", "one job", "--jobs", 1)
    finally:
        write(project / "mine.py", MINE)
    after = contents(project / "one job")
    assert {name: after[name] for name in before} == before  # what there was is still there
    store = RunDirectory(project / "one job")
    new = [store.read_file(project / "one job" / name)[0] for name in after.keys() - before.keys()]
    assert {header["label"]["method"] for header in new} == {"mine", "mine blurred"}
    assert sum(header["kind"] == "maps" for header in new) == 2 * 2


def test_changed_maps_are_new_work_for_their_method_only(project):
    before = contents(project / "one job")
    maps = np.load(project / "maps.npy")
    np.save(project / "maps.npy", 1 - maps)
    try:
        invoke(project, "run", "plan.toml", "--store", "one job", "--jobs", 1)
    finally:
        np.save(project / "maps.npy", maps)
    store, after = RunDirectory(project / "one job"), contents(project / "one job")
    new = [store.read_file(project / "one job" / name)[0] for name in after.keys() - before.keys()]
    assert {header["label"]["method"] for header in new} <= {"truth", "truth blurred", "mine blurred"}
    assert sum(header["label"]["method"] == "truth" for header in new) == 2 * (1 + 2 * 2)


def test_a_function_that_does_not_exist_is_named(project):
    text = (project / "plan.toml").read_text()
    write(project / "typo.toml", text.replace("mine:saliency", "mine:salience"))
    words = flat(invoke(project, "run", "typo.toml", "--store", "typo", code=1).stderr)
    assert "methods.mine" in words
    assert "'salience'" in words
