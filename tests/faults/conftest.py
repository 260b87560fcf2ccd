"""A project whose plan has been run; every row gets a copy of it."""

import shutil

import pytest

import worlds
from commands import invoke
from projects import QUADRANTS, save_images, write

PLAN = """
[data]
name = "folder"
root = "images"
[model]
factory = "my_model:build"
[methods]
IG = { name = "ig", steps = 2 }
[evaluation]
self_test = false
imputers = ["fixed"]
fractions = [0.5]
controls = ["random"]
[run]
batch_size = 8
map_batch_size = 8
"""

MODEL = """
from torch import manual_seed, nn

def build():
    manual_seed(0)
    return nn.Sequential(nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(12, 4))
"""


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """A folder with images, a model, a plan and its finished run directory."""
    root = tmp_path_factory.mktemp("finished")
    save_images(root / "images", worlds.quadrants(n=8), QUADRANTS)
    write(root / "my_model.py", MODEL)
    write(root / "plan.toml", PLAN)
    invoke(root, "run", "plan.toml", "--store", "run", "--jobs", 1)
    return root


def copied(finished, target):
    """A run directory knows where its plan lay."""
    shutil.copytree(finished, target)
    manifest = target / "run" / "manifest.json"
    manifest.write_text(manifest.read_text().replace(str(finished), str(target)))
    return target


@pytest.fixture
def folder(finished, tmp_path):
    """A copy of it, to be spoiled."""
    return copied(finished, tmp_path / "project")


@pytest.fixture(scope="session")
def untouched(finished, tmp_path_factory):
    """A copy of it, for all that may change nothing."""
    return copied(finished, tmp_path_factory.mktemp("untouched") / "project")
