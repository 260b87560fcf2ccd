"""Compute everything in docs/reproduction.md: python -m reproduction.run [--dry-run]

It takes hours. Interrupt it at any time and run it again to resume.
"""

import argparse
import subprocess
import sys
import tomllib
from itertools import pairwise

from reproduction.harvest import STAGES
from reproduction.tables import AUDITED, EXPERIMENTS, HERE, PLANS, SHARES

ROOT = HERE.parent
REQUIRED = {
    "data/cifar-10-batches-bin": "roadworthy data download cifar10 --root data",
    "data/food-101": "roadworthy data download food101 --root data",
    "data/weights/resnet20_cifar10.safetensors": "save the weights of a CIFAR-10 ResNet-20 there, as safetensors",
}
ALPHAS, HINTS = (1, 100), (0.01, 0.9)


def commands() -> list[list[str]]:
    """The commands of roadworthy, in order; each resumes where it was stopped."""
    names = [*(name for plans in EXPERIMENTS.values() for name in plans), *STAGES]
    training = [["train", _plan(name)] for name in names if _lacks_weights(name)]
    runs = []
    for plans in (*EXPERIMENTS.values(), *staged().values()):
        runs.append(["run", _plan(plans[0]), "--store", _store(plans[0])])
        for before, other in pairwise(plans):  # they share maps of the test images, some those of the train images
            runs.append(["merge", _store(before), "--into", _store(other)])
            runs.append(["run", _plan(other), "--store", _store(other)])
    grid = [f"--alpha={alpha}" for alpha in ALPHAS] + [f"--hint={hint}" for hint in HINTS]
    search = ["gain", "search", _plan("cifar10-cpu"), "--out", "runs/gain-search.csv", "--epochs", "1", *grid]
    fractions = [f"--fraction={fraction}" for fraction in SHARES]
    audits = [
        ["audit", _store(EXPERIMENTS[experiment][0]), *fractions, *(f"--only={question}" for question in questions)]
        for experiment, questions in AUDITED.items()
    ]
    return [*training, *runs, search, *audits]


def staged() -> dict[str, list[str]]:
    """The plans of `STAGES` by data set."""
    data = dict.fromkeys(name.partition("-")[0] for name in STAGES)
    return {one: [name for name in STAGES if name.startswith(one)] for one in data}


def modules() -> list[list[str]]:
    """What follows the runs: measures that need no plan, and the tables."""
    scripts = ("measures", "toy_worlds", "mask_curve", "gain_masks", "collect", "document")
    return [*([f"reproduction.{script}"] for script in scripts), ["reproduction.harvest", "runs"]]


def _plan(name: str) -> str:
    return f"plans/{name}.toml"


def _store(name: str) -> str:
    return f"runs/{name}"


def _lacks_weights(name: str) -> bool:
    tables = tomllib.loads((PLANS / f"{name}.toml").read_text(encoding="utf-8"))
    return "training" in tables and not (PLANS / tables["model"]["weights"]).exists()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dry-run", action="store_true", help="print the commands only")
    dry_run = parser.parse_args().dry_run
    for path, cure in REQUIRED.items():
        if not dry_run and not (ROOT / path).exists():
            sys.exit(f"{path} is missing: {cure}")
    for module in [*(["roadworthy", *command] for command in commands()), *modules()]:
        print(" ".join(module), flush=True)
        if not dry_run:
            subprocess.run([sys.executable, "-m", *module], cwd=ROOT, check=True)


if __name__ == "__main__":
    main()
