"""The models that are explained, in half precision: python -m reproduction.weights [--root data] [--keep]

Copies those in `weights/` to ROOT/weights, where the plans look for them. `--keep` does the reverse, after a training:
it rounds them to half precision, which is then what the plans explain, and stores them in `weights/`.
"""

import argparse
import shutil
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from reproduction.tables import HERE

WEIGHTS = HERE / "weights"
NAMES = ("resnet18_half_cifar10.safetensors", "resnet18_half_food10.safetensors")


def rounded(path: Path, out: Path) -> None:
    """All weights in half precision; counts of batches stay integers. The header says how they were trained."""
    tensors = {name: one.half() if one.dtype == torch.float32 else one for name, one in load_file(path).items()}
    with safe_open(path, "pt") as file:
        header = file.metadata()
    out.parent.mkdir(parents=True, exist_ok=True)
    save_file(tensors, out, header)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=Path("data"))
    parser.add_argument("--keep", action="store_true", help="store what was trained")
    options = parser.parse_args()
    folder = options.root / "weights"
    for name in NAMES:
        if options.keep:
            rounded(folder / name, WEIGHTS / name)
        elif not (WEIGHTS / name).exists():
            print(f"{WEIGHTS / name} does not exist: train it with --train")
            continue
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(WEIGHTS / name, folder / name)


if __name__ == "__main__":
    main()
