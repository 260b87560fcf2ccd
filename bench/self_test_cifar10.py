"""The self-test on CIFAR-10 with a ResNet-20: the figures of docs/self-test.md. Measuring needs $ROADWORTHY_DATA.

    python bench/self_test_cifar10.py --measure FOLDER    compare and test; an interrupted measurement continues
    python bench/self_test_cifar10.py --keep FOLDER       keep its tables and sentences in self_test_cifar10.json
    python bench/self_test_cifar10.py --write             write what is kept into the page

Four methods and the blind controls on the first 1,000 test images, imputed with linear and fixed, in both orders.
"""

import os
from pathlib import Path

import roadworthy as rw
from roadworthy.experiments.demo import FEW_FRACTIONS
from roadworthy.experiments.plans import plan_from

KEPT = Path(__file__).with_suffix(".json")
PAGE = Path(__file__).parent.parent / "docs" / "self-test.md"


def plan(images: int) -> rw.Plan:
    noisy = {"steps": 8, "ig_samples": 4, "ig_sigma": 0.1, "units": "pixels"}
    return plan_from(
        {
            "data": {"name": "cifar10", "root": os.environ["ROADWORTHY_DATA"], "split": "test", "images": images},
            "model": {
                "name": "cifar-resnet",
                "depth": 20,
                "weights": "resnet20-cifar10",
                "mean": [0.485, 0.456, 0.406],
                "std": [0.229, 0.224, 0.225],
            },
            "methods": {
                "IG": {"name": "ig", "steps": 8},
                "IG-SG": {"name": "ig-sg", **noisy},
                "G": "gradient",
                "GB": "gb",
            },
            "evaluation": {
                "imputers": ["linear", "fixed"],
                "fractions": list(FEW_FRACTIONS),
                "controls": ["random", "edges", "center"],
            },
            "run": {"batch_size": 50, "map_batch_size": 50, "block_size": 100, "threads": 1},
        }
    )
