"""Plans on small images, in a folder of their own."""

import json
import tomllib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import worlds
from roadworthy.experiments.plans import plan_from, read_plan

MINE = '''
import torch
from torch import nn


class Quadrants(nn.Module):
    """Its logits are the mean brightness of the four quadrants."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(40.0))

    def forward(self, images):
        half, gray = images.shape[-1] // 2, images.mean(dim=1)
        parts = [gray[:, :half, :half], gray[:, :half, half:], gray[:, half:, :half], gray[:, half:, half:]]
        return self.scale * torch.stack([part.mean(dim=(1, 2)) for part in parts], dim=1)


def brightness(model, batch, key):
    return batch.images


def gray(batch, removed, key):
    return torch.where(removed[:, None], 0.5, batch.images)
'''

TABLES = {
    "data": {"name": "folder", "root": "images"},
    "model": {"factory": "mine:Quadrants"},
    "methods": {"own": "mine:brightness", "G": "gradient"},
    "evaluation": {"fractions": [0.3, 0.6], "controls": ["random"], "self_test": False},
    "run": {"batch_size": 4, "map_batch_size": 4, "block_size": 8},
}


class Project:
    """A folder with images, code and a plan."""

    def __init__(self, root: Path):
        self.root = root
        self.path = root / "plan.toml"
        self.mine = root / "mine.py"
        self.store = root / "run"
        self.mine.write_text(MINE)
        self.write_images("images", 20)

    def write_images(self, name: str, count: int) -> None:
        """Of the world with four quadrants, in a folder per class."""
        world = worlds.quadrants(n=count)
        pixels = (world.images * 255).round().byte().permute(0, 2, 3, 1).numpy()
        for row, (image, label) in enumerate(zip(pixels, world.labels.tolist(), strict=True)):
            folder = self.root / name / str(label)
            folder.mkdir(parents=True, exist_ok=True)
            Image.fromarray(np.ascontiguousarray(image)).save(folder / f"{row:03}.png")

    def tables(self, **sections):
        """The tables of the plan with some keys changed; None removes one."""
        tables = {name: dict(values) for name, values in TABLES.items()}
        for name, values in sections.items():
            merged = {**tables.get(name, {}), **values}
            tables[name] = {key: value for key, value in merged.items() if value is not None}
        return tables

    def plan(self, **sections):
        return plan_from(self.tables(**sections), self.root)

    def write_plan(self, **sections):
        """The plan as a file; returns it as read from there."""
        tables = self.tables(**sections)
        self.path.write_text("".join(_section(name, values) for name, values in tables.items()))
        assert tomllib.loads(self.path.read_text()) == tables
        return read_plan(self.path)


def _section(name, values):
    return "".join([f"[{name}]\n", *(f"{json.dumps(key)} = {_toml(value)}\n" for key, value in values.items())])


def _toml(value):
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(key)} = {_toml(entry)}" for key, entry in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value)


@pytest.fixture
def project(tmp_path) -> Project:
    return Project(tmp_path)
