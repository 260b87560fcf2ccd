"""Fixtures that several files share: a user's project, a run of the demo, and a browser."""

import os
import shutil
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from filelock import FileLock
from safetensors.torch import save_file

import worlds
from commands import contents, invoke, roadworthy
from projects import QUADRANTS, save_images, write

PLAN = """
[data]
name = "folder"
root = "images"
[model]
factory = "my_model:build"
weights = "weights.safetensors"
[methods]
IG = { name = "ig", steps = 3 }
IG-SG = { name = "ig-sg", steps = 3, ig_samples = 2 }
IG-SQ = { name = "ig-sq", steps = 3, ig_samples = 2 }
GB = "gb"
[evaluation]
self_test = false
imputers = ["fixed", "linear"]
fractions = [0.2, 0.5, 0.8]
seeds = [0, 1]
copied = ["IG"]
[run]
batch_size = 10
map_batch_size = 10
block_size = 10
"""

MODEL = """
from torch import nn

def build(width=4):
    return nn.Sequential(nn.Conv2d(3, width, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(),
                         nn.Linear(4 * width, 4))
"""

ITEMS = 3 + 8 * 3 + 8 * 2 * 2 * 2 * 3 * 3
"""Of the plan, for 3 blocks: a baseline each; maps of 4 methods, 3 controls and a blurred copy; predictions of each in
2 orders, with 2 imputers and 2 seeds, at 3 fractions. Inverted copies need none."""


@pytest.fixture(scope="session")
def project(tmp_path_factory):
    """A user's folder: 24 images, a model with weights, and a plan."""
    root = tmp_path_factory.mktemp("project")
    save_images(root / "images", worlds.quadrants(n=24), QUADRANTS)
    write(root / "my_model.py", MODEL)
    write(root / "plan.toml", PLAN)
    torch.manual_seed(0)
    network = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3, padding=1), torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(2), torch.nn.Flatten(),
        torch.nn.Linear(16, 4),
    )  # fmt: skip
    save_file(network.state_dict(), root / "weights.safetensors")
    return root


@pytest.fixture(scope="session")
def uninterrupted(project):
    """The bytes of the items of the plan, computed in one go by one process; they are in the store `uninterrupted`."""
    invoke(project, "run", "plan.toml", "--store", "uninterrupted", "--jobs", 1)
    items = contents(project / "uninterrupted")
    assert len(items) == ITEMS
    return items


class DemoRun(NamedTuple):
    lines: list[str]
    errors: str
    page: Path


@pytest.fixture(scope="session")
def demo_run(tmp_path_factory):
    """The demo, run from the command line on fewer images than usual; once for all pytest workers."""
    folder = shared_folder(tmp_path_factory) / "demo"
    with FileLock(folder.with_suffix(".lock")):
        if not folder.exists():
            run_demo(tmp_path_factory.mktemp("demo")).rename(folder)
    return DemoRun(
        (folder / "stdout.txt").read_text().splitlines(), (folder / "stderr.txt").read_text(), folder / "demo.html"
    )


def run_demo(folder):
    result = roadworthy(folder, "demo", "--images", 24, "--out", "demo.html")
    (folder / "stdout.txt").write_text(result.stdout)
    (folder / "stderr.txt").write_text(result.stderr)
    return folder


def shared_folder(tmp_path_factory):
    """The temporary folder of this session, above those of its workers."""
    folder = tmp_path_factory.getbasetemp()
    return folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder


@pytest.fixture(scope="session")
def browser():
    """The system's Chromium: Playwright need not download its own."""
    playwright = pytest.importorskip("playwright.sync_api", reason="no Playwright: pip install 'roadworthy[dev]'")
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if not chromium:
        pytest.skip("no browser: these tests open the report in Chromium; install it (apt-get install chromium)")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()
