"""What larger units cost: γ and mask detection by the size of patches, on CIFAR-10 with ResNet-20, linear imputation.

    ROADWORTHY_DATA=... python bench/units.py [IMAGES]

It prints the rows of the tables in docs/units.md; intervals are 95 %, over images.
"""

import os
import sys
from pathlib import Path

import roadworthy as rw

SIZES = (1, 2, 4, 8)
FRACTIONS = (0.2, 0.5, 0.8)


def compared(images: int, size: int) -> rw.Comparison:
    folder = Path(os.environ["ROADWORTHY_DATA"])
    model = rw.models.resnet20_cifar10(folder / "weights" / "resnet20_cifar10.safetensors")
    data = rw.datasets.first(rw.datasets.CIFAR10(folder, "test"), images)
    methods = {"IG": rw.attributions.IntegratedGradients(steps=8)}
    units = "pixels" if size == 1 else rw.Patches(size)
    return rw.compare(model, data, methods, units=units, fractions=FRACTIONS, controls=("random",), progress=False)


def main() -> None:
    images = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    for size in SIZES:
        comparison = compared(images, size)
        audit = comparison.audit(FRACTIONS, questions=("geometry", "detection"), progress=False)
        print(f"== {'pixels' if size == 1 else f'patches {size}'}, {images} images")
        print(comparison.ranking()[["method", "srg", "srg_low", "srg_high"]].round(3).to_string(index=False))
        for table in ("geometry", "detection"):
            print(audit.tables[table].round(3).to_string(index=False), flush=True)


if __name__ == "__main__":
    main()
