"""Data climbs, imports go down: the house of CONTRIBUTING.md, kept by a test."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "src" / "roadworthy"

FLOORS = [
    ["errors", "keys", "types", "files", "checkpoints", "training"],
    ["attributions", "orders", "imputers", "augmentations", "datasets", "models"],
    [
        *("removal", "masks", "quality", "evaluation", "geometry", "schooling", "retraining", "leakage", "recovery"),
        *("gan_training", "gan_search"),
    ],
    ["statistics"],
    [
        *("parts", "plan", "plan_files", "items", "store", "building", "auditing", "work", "executors", "runner"),
        *("timing", "costs", "auditor"),
    ],
    [
        *("progress", "report", "figures", "study", "toy", "illustrations", "inspection", "comparison", "calls"),
        *("compare", "shown", "demo", "gain_commands", "model_commands", "stored", "forecasts", "lab"),
        *("imputer_commands", "runs"),
        *("audits", "cli", "__main__"),
    ],
]
"""Within a floor a module may import what stands to its left; the families of floor 1 never meet."""

FAMILIES = set(FLOORS[1])
PLACE = {name: (floor, position) for floor, names in enumerate(FLOORS) for position, name in enumerate(names)}
MODULES = sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def imported(path: Path) -> set[str]:
    """First-level names of the package that a file imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "roadworthy":
            rest = node.module.split(".")[1:]
            found |= {rest[0]} if rest else {alias.name for alias in node.names}
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("roadworthy.")}
    return found - {"__version__"}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_imports_only_from_below(path):
    name = name_of(path)
    assert name in PLACE, f"{name} has no floor: give it one in FLOORS and in the README"
    for other in imported(path) - {name}:
        assert PLACE[other] < PLACE[name], f"{name} must not import {other}"
        assert not (name in FAMILIES and other in FAMILIES), f"sibling families never meet: {name}, {other}"


@pytest.mark.parametrize(
    "path", [path for path in MODULES if name_of(path) == "statistics"], ids=lambda path: path.name
)
def test_statistics_do_without_torch(path):
    assert "torch" not in path.read_text().replace("no torch", "")


def test_only_the_door_prints():
    talkers = [path for path in MODULES if "print(" in path.read_text() and PLACE[name_of(path)][0] < 5]
    assert talkers == []
