"""What `converged` saves: samples per image, and how alike the ranks are to those of all samples and of other noise.

python bench/converged.py [--images 32]          ResNet-20 and images of the package, the paper's numbers of samples

IG has 8 steps instead of 50. Spearman correlation of an image's pixels, means over images.
"""

import argparse
from typing import Any

import numpy as np
import torch
from torch import Tensor

import roadworthy as rw
from roadworthy.attributions.ensembles import Ensemble
from roadworthy.core.random import Key
from roadworthy.core.types import Batch
from roadworthy.statistics import spearman

RULES = (None, 0.3, 0.6, 0.9)


class Counting:
    """A base that counts the noisy images it explains."""

    def __init__(self, base: Any):
        self.base, self.images = base, 0
        self.baseline = getattr(base, "baseline", "mean")
        self.maps = self._with_baseline if hasattr(base, "baseline") else self._without

    def _with_baseline(self, network: Any, inputs: Tensor, targets: Tensor, baseline: Tensor | float = 0.0) -> Tensor:
        self.images += len(inputs)
        return self.base.maps(network, inputs, targets, baseline)

    def _without(self, network: Any, inputs: Tensor, targets: Tensor) -> Tensor:
        self.images += len(inputs)
        return self.base.maps(network, inputs, targets)


def ensembles(base: Any, samples: int, sigma: float, rule: float | None) -> dict[str, Ensemble]:
    attributions = rw.attributions
    kinds = {"SG": attributions.smoothgrad, "SQ": attributions.smoothgrad_squared, "Var": attributions.vargrad}
    return {name: make(base, samples, sigma, units="pixels", converged=rule) for name, make in kinds.items()}


def explained(model: Any, batch: Batch, base: Any, samples: int, sigma: float, rule: float | None, key: Key):
    """Maps by statistic, and the samples per image: all three share them."""
    counting = Counting(base)
    three = ensembles(counting, samples, sigma, rule)
    moments = three["SG"].source(model, batch, key)
    return {name: one.finish(moments, batch) for name, one in three.items()}, counting.images / len(batch)


def alike(one: Tensor, other: Tensor) -> float:
    pairs = zip(one.flatten(1).numpy(), other.flatten(1).numpy(), strict=True)
    return float(np.mean([spearman(a, b) for a, b in pairs]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=32)
    options = parser.parse_args()
    torch.set_num_threads(1)
    model = rw.models.resnet20_cifar10()
    batch = next(iter(rw.datasets.first(rw.datasets.CIFAR10Sample(), options.images).batches(options.images)))
    print("| base | `converged` | samples per image | SG | SQ | Var |\n|---|---|--:|--:|--:|--:|")
    for name, base, samples, sigma in (
        ("IG", rw.attributions.IntegratedGradients(8), 15, 0.1),
        ("GB", rw.attributions.GuidedBackprop(), 100, 0.5),
    ):
        full, _ = explained(model, batch, base, samples, sigma, None, Key(0))
        for rule in RULES:
            key = Key(0) if rule else Key(1)  # without a rule: other noise
            maps, count = explained(model, batch, base, samples, sigma, rule, key)
            cells = " | ".join(f"{alike(maps[kind], full[kind]):.3f}" for kind in maps)
            print(f"| {name} | {rule or 'all samples, other noise'} | {count:.1f} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
