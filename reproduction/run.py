"""All of docs/reproduction.md from nothing: python -m reproduction.run (stop it at any moment, and run it again)."""

import subprocess
import sys
import tomllib
from pathlib import Path

from reproduction.collect import AUDITED, EXPERIMENTS, SHARES

ROOT = Path(__file__).parent.parent
PLANS = {store: f"plans/{store}.toml" for stores in EXPERIMENTS.values() for store in stores}
NEEDED = {
    "data/cifar-10-batches-bin": "roadworthy data get cifar10 --root data",
    "data/food-101": "roadworthy data get food101 --root data",
    "data/weights/resnet20_cifar10.safetensors": "put the weights of a CIFAR-10 ResNet-20 there, as safetensors",
}


def steps() -> list[list[str]]:
    """Commands of roadworthy, in their order; each goes on where it was stopped."""
    trained = [["train", plan] for plan in PLANS.values() if _weights_to_make(plan)]
    first, second = EXPERIMENTS["cifar10"]
    run = [["run", PLANS[first], "--store", f"runs/{first}"], ["merge", f"runs/{first}", "--into", f"runs/{second}"]]
    run += [["run", plan, "--store", f"runs/{store}"] for store, plan in PLANS.items() if store != first]
    audits = [
        ["audit", f"runs/{EXPERIMENTS[name][0]}", *(f"--fraction={share}" for share in SHARES)]
        + [f"--only={question}" for question in questions]
        for name, questions in AUDITED.items()
    ]
    grid = [f"--alpha={alpha}" for alpha in (1, 100)] + [f"--hint={hint}" for hint in (0.01, 0.9)]
    search = ["gain", "search", PLANS[first], "--out", "runs/gain-search.csv", "--epochs", "1", *grid]
    return [*trained, *run, search, *audits]


def _weights_to_make(plan: str) -> bool:
    tables = tomllib.loads((ROOT / plan).read_text(encoding="utf-8"))
    return "training" in tables and not (ROOT / "plans" / tables["model"]["weights"]).exists()


def main() -> None:
    for path, cure in NEEDED.items():
        if not (ROOT / path).exists():
            sys.exit(f"{path} is missing: {cure}")
    for step in steps():
        print(f"roadworthy {' '.join(step)}", flush=True)
        subprocess.run([sys.executable, "-m", "roadworthy", *step], cwd=ROOT, check=True)
    for script in ("measures", "collect", "document"):
        subprocess.run([sys.executable, "-m", f"reproduction.{script}"], cwd=ROOT, check=True)


if __name__ == "__main__":
    main()
