"""What larger units cost: γ and mask detection by the size of patches, on CIFAR-10 with linear imputation.

    ROADWORTHY_DATA=... python bench/units.py [IMAGES] [geometry] [detection]

Masks are those of the controls random and edges, and for detection random ones; no model is needed. It prints the rows
of the table in docs/units.md; intervals are 95 %, over images.
"""

import os
import sys

import numpy as np
import torch

import roadworthy as rw
from roadworthy.attributions import Edges, Random
from roadworthy.audit.geometry import geometry_of
from roadworthy.audit.mask_detection import detect, train_mask_detector, train_test_images
from roadworthy.core.masks import random_removal
from roadworthy.core.random import Key
from roadworthy.evaluation.orders import most_relevant_first
from roadworthy.evaluation.units import PIXELS, UnitSetting

SIZES = (1, 2, 4, 8)
FRACTIONS = (0.2, 0.5, 0.8)
KEY = Key(0)


def gammas(data, setting) -> None:
    batch = next(data.batches(len(data)))
    maps = {name: (lambda own=own: own(None, batch, KEY).float()) for name, own in METHODS.items()}
    found = geometry_of(data, batch.labels, maps, {"morf": most_relevant_first}, FRACTIONS, KEY, units=setting)
    for row in found.reconstructions:
        print(f"{setting.name:10} γ {row.method:7} {row.fraction:.0%} {_ratio(row.residual, row.total)}", flush=True)


METHODS = {"random": Random(), "edges": Edges()}


def _ratio(above: np.ndarray, below: np.ndarray) -> str:
    """A ratio of sums over images, with its bootstrap interval."""
    rows = np.random.default_rng(0).integers(0, len(above), (2000, len(above)))
    low, high = np.quantile(above[rows].sum(axis=1) / below[rows].sum(axis=1), (0.025, 0.975))
    return f"{above.sum() / below.sum():.3f} [{low:.3f}, {high:.3f}]"


def detection(data, setting) -> None:
    train, tested = (setting(part) for part in train_test_images(data, KEY)[:2])
    imputer = rw.NoisyLinear()
    network = train_mask_detector(imputer, train, KEY.fold("predictor"))
    for fraction in FRACTIONS:
        removed = random_removal(tested, "scatter", fraction, KEY.fold("test"))
        auc = detect(network, imputer, tested, removed, KEY).auc
        half = 1.96 * auc.std(ddof=1) / len(auc) ** 0.5
        print(f"{setting.name:10} detection AUC {fraction:.0%} {auc.mean():.3f} ± {half:.3f}", flush=True)


def main() -> None:
    images, questions = int((sys.argv[1:] or [300])[0]), sys.argv[2:] or ["geometry", "detection"]
    torch.set_num_threads(1)
    data = rw.datasets.first(rw.datasets.CIFAR10(os.environ["ROADWORTHY_DATA"], "test"), images)
    for size in SIZES:
        setting = PIXELS if size == 1 else UnitSetting(rw.Patches(size))
        if "geometry" in questions:
            gammas(data, setting)
        if "detection" in questions:
            detection(data, setting)


if __name__ == "__main__":
    main()
