"""Compute everything in docs/reproduction.md, from nothing: python -m reproduction.run [--size tiny] [--jobs N]

It takes hours. Interrupt it at any time and run it again to resume. The models that are explained come with it
(`weights/`, in half precision): trained on another processor they would be others, and every point depends on them.
`--train` trains them again. `--left` computes only points that are not in `results/` yet.

`--size tiny` runs every step in minutes, with made-up images and tiny networks, into runs/tiny; its page shows that
the steps work together, and nothing else.
"""

import argparse
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import torch

from reproduction.document import DOCUMENT
from reproduction.stages import AUDITED, QUESTIONS, SHARES, STAGES, Stage
from reproduction.tables import HERE, RESULTS, Results
from reproduction.tiny import IMAGES, prepare
from roadworthy.cli import app

ROOT = HERE.parent
REQUIRED = {
    "cifar-10-batches-bin": "roadworthy data download cifar10 --root data",
    "food-101": "roadworthy data download food101 --root data, then keep ten classes in meta/",
    "weights/resnet20_cifar10.safetensors": "roadworthy data download resnet20-cifar10 --root data",
}
SHARED_IMAGES = 2048
"""whose maps another model is evaluated with"""


class Layout(NamedTuple):
    """Where a reproduction reads and writes; `base` holds plans, data and runs."""

    base: Path
    results: Path
    document: Path
    size: str = "full"
    trains: bool = False
    """the models that are explained, too; else those in weights/ are"""
    left: bool = False
    """only points that are not in the results yet"""
    jobs: int = 1
    """processes of one thread"""

    def plan(self, name: str) -> str:
        return str(self.base / "plans" / f"{name}.toml")

    def run(self, name: str) -> str:
        return str(self.base / "runs" / name)

    @property
    def data(self) -> str:
        return str(self.base / "data")

    def has(self, *tables: str) -> bool:
        """Whether they are in the results, and only what is left is computed."""
        return self.left and all((self.results / f"{table}.csv").exists() for table in tables)

    def has_all_points(self, plan: str) -> bool:
        points = Results(self.results).facts().get(plan, {}).get("points", {"": (0, 1)})
        return self.left and all(kept == planned for kept, planned in points.values())


def layout(size: str, out: Path | None = None, trains: bool = False, left: bool = False, jobs: int = 1) -> Layout:
    if size == "full":
        return Layout(ROOT, RESULTS, DOCUMENT, size, trains, left, jobs)
    base = (out or ROOT / "runs" / "tiny").resolve()
    return Layout(base, base / "results", base / "reproduction.md", size, trains=True, left=left, jobs=jobs)


def commands(place: Layout) -> list[list[str]]:
    """Modules with their arguments, in order; each resumes where it was stopped."""
    steps = [*_models(place), *(command for stage in STAGES for command in _stage(stage, place))]
    if not place.has(*QUESTIONS):
        fractions, questions = (f"--fraction={one}" for one in SHARES), (f"--only={one}" for one in QUESTIONS)
        steps.append(["roadworthy", "audit", place.run(AUDITED), *fractions, *questions, f"--jobs={place.jobs}"])
    if not place.has("neighbors", "cost"):
        steps.append(_measure(place, "measures", "--root", place.data))
    if not place.has("toy-worlds"):
        steps.append(_measure(place, "toy_worlds", *(["--worlds", "2"] if place.size == "tiny" else [])))
    source = ("--root", place.data, "--work", place.run("mask-curve"), "--plan", place.plan(AUDITED))
    steps.append(_measure(place, "mask_curve", *source))
    results, plans = str(place.results), str(place.base / "plans")
    steps.append(["reproduction.harvest", place.run(""), "--out", results, "--plans", plans])
    steps.append(["reproduction.derive", "--results", results])
    steps.append(["reproduction.document", "--results", results, "--out", str(place.document)])
    return steps


def _stage(stage: Stage, place: Layout) -> list[list[str]]:
    store, steps = place.run(stage.plan), []
    if stage.waits_for:
        source = ("--root", place.data, "--work", place.run("gain-masks"), *(["--left"] if place.left else []))
        steps.append(_measure(place, stage.waits_for, *source))
    if place.has_all_points(stage.plan):
        return steps
    if stage.imported:
        plan, model = stage.imported
        images = IMAGES if place.size == "tiny" else SHARED_IMAGES
        target = str(Path(place.run("maps")) / model)
        steps.append(["reproduction.carried", place.run(plan), "--out", target, "--images", str(images)])
    if stage.shares and not (place.left and not Path(place.run(stage.shares)).exists()):
        steps.append(["roadworthy", "merge", place.run(stage.shares), "--into", store])
    if place.left:
        run = ["reproduction.left", place.plan(stage.plan), "--results", str(place.results)]
    else:
        run = ["roadworthy", "run", place.plan(stage.plan)]
    return [*steps, [*run, "--store", store, f"--jobs={place.jobs}"]]


def _models(place: Layout) -> list[list[str]]:
    """Train the models that are explained, or take those that are stored."""
    training = [["roadworthy", "train", place.plan(name)] for name in TRAINED] if place.trains else []
    if place.size == "tiny":
        return training
    return [*training, ["reproduction.weights", "--root", place.data, *(["--keep"] if place.trains else [])]]


TRAINED = ("cifar10-tables", "food101-tables")
"""plans whose model is trained first; a training that is finished ends at once"""


def _measure(place: Layout, module: str, *arguments: str) -> list[str]:
    return [f"reproduction.{module}", *arguments, "--out", str(place.results), "--size", place.size]


def perform(command: list[str], place: Layout) -> None:
    """In a process of its own; of a tiny size in this one, because starting it would take longer than the work."""
    if place.size == "full":
        subprocess.run([sys.executable, "-m", *command], cwd=ROOT, check=True)
        return
    arguments, sys.argv = sys.argv, command
    try:
        import_module(command[0]).main() if command[0] != "roadworthy" else app()
    except SystemExit as end:
        if end.code:
            raise
    finally:
        sys.argv = arguments


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=["full", "tiny"], default="full")
    parser.add_argument("--out", type=Path, help="folder of a tiny reproduction; default: runs/tiny")
    parser.add_argument("--train", action="store_true", help="train the explained models, instead of those in weights/")
    parser.add_argument("--left", action="store_true", help="leave out points that are in results/ already")
    parser.add_argument("--jobs", type=int, default=1, help="processes of one thread each; default: 1")
    parser.add_argument("--dry-run", action="store_true", help="print the commands only")
    options = parser.parse_args()
    place = layout(options.size, options.out, options.train, options.left, options.jobs)
    if options.size == "tiny" and not options.dry_run:
        torch.set_num_threads(1)
        prepare(place.base)
    for path, cure in REQUIRED.items():
        if not options.dry_run and not (Path(place.data) / path).exists():
            sys.exit(f"{Path(place.data) / path} is missing: {cure}")
    for command in commands(place):
        print(" ".join(command), flush=True)
        if not options.dry_run:
            perform(command, place)


if __name__ == "__main__":
    main()
