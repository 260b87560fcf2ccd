"""What larger units cost: γ, mask detection and leakage by the size of patches, on CIFAR-10 with ResNet-20.

    ROADWORTHY_DATA=... python bench/units.py [IMAGES]

It prints the table of docs/units.md. Intervals are over images.
"""

import os
import sys
from pathlib import Path

import numpy as np
import pandas as pd

import roadworthy as rw

SIZES = (1, 2, 4, 8)
FRACTIONS = (0.2, 0.5, 0.8)


def compared(images: int, size: int) -> rw.Comparison:
    folder = Path(os.environ["ROADWORTHY_DATA"])
    model = rw.models.resnet20_cifar10(folder / "weights" / "resnet20_cifar10.safetensors")
    data = rw.datasets.first(rw.datasets.CIFAR10(folder, "test"), images)
    methods = {"IG": rw.attributions.IntegratedGradients(steps=8), "gradient": "gradient"}
    units = "pixels" if size == 1 else rw.Patches(size)
    return rw.compare(
        model, data, methods, imputers=("linear", "fixed"), units=units, fractions=FRACTIONS,
        controls=("random", "edges", "center"), progress=False,
    )  # fmt: skip


def interval(values: np.ndarray) -> str:
    values = values[~np.isnan(values)]
    half = 1.96 * values.std(ddof=1) / np.sqrt(len(values))
    return f"{values.mean():.2f} ± {half:.2f}"


def main() -> None:
    images = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    for size in SIZES:
        comparison = compared(images, size)
        audit = comparison.audit(FRACTIONS, questions=("geometry", "detection", "leakage"), progress=False)
        name = "pixels" if size == 1 else f"patches {size}"
        print(f"== {name}", flush=True)
        with pd.option_context("display.width", 250, "display.max_columns", 40, "display.max_rows", 200):
            print(comparison.ranking()[["method", "imputer", "srg", "srg_low", "srg_high"]].round(3).to_string())
            for table in ("geometry", "detection", "leakage"):
                print(audit.tables[table].round(3).to_string(), flush=True)


if __name__ == "__main__":
    main()
