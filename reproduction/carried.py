"""Write the maps of a run directory as files, so that another model can be evaluated with them.

python -m reproduction.carried runs/cifar10-tables --out runs/maps/ResNet-18 [--images 2048]
"""

import argparse
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

from reproduction.tables import METHODS
from roadworthy.experiments.run import open_run


def export(run: Path, out: Path, images: int) -> None:
    """The maps of the paper's methods on the first images, one file per method."""
    opened = open_run(run)
    out.mkdir(parents=True, exist_ok=True)
    for method in METHODS:
        parts = [opened.store.read(opened.design.map_item(method, block)) for block in opened.design.blocks]
        save_file({"maps": np.concatenate([part["maps"] for part in parts])[:images]}, out / f"{method}.safetensors")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--images", type=int, default=2048)
    options = parser.parse_args()
    export(options.run, options.out, options.images)


if __name__ == "__main__":
    main()
