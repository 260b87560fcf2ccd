"""Maps of SmoothGrad, SmoothGrad² and VarGrad: ours against Captum's NoiseTunnel, at equal settings, in one run.

    python bench/attributions.py [CIFAR_ROOT]

Seconds for all images, best of three. Without real data the network is untrained and the images are noise.
"""

import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import torch
from captum.attr import GuidedBackprop, IntegratedGradients, NoiseTunnel

import roadworthy as rw
from roadworthy.core.random import Key
from roadworthy.core.types import Batch
from roadworthy.evaluation.sweep import explain
from roadworthy.models import cifar_resnet, resnet20_cifar10
from roadworthy.models.normalized import Normalized

IMAGES, STEPS, SAMPLES = 64, 4, 4
SIGMA = {"IG": 0.2, "GB": 1.0}


def subject(root: Path | None) -> tuple[Normalized, Batch]:
    if root is None:
        images = Key(0).uniform(range(IMAGES), (3, 32, 32))
        return Normalized(cifar_resnet()).eval(), Batch(torch.arange(IMAGES), images, torch.zeros(IMAGES).long())
    model = resnet20_cifar10(root / "weights" / "resnet20_cifar10.safetensors")
    return model, next(rw.datasets.CIFAR10(root).batches(IMAGES))


def with_captum(model: Normalized, batch: Batch, base: str, kinds: tuple[str, ...]) -> None:
    inputs = model.normalize(batch.images).requires_grad_()
    options = {"n_steps": STEPS} if base == "IG" else {}
    method = {"IG": IntegratedGradients, "GB": GuidedBackprop}[base](model.network)
    for kind in kinds:
        NoiseTunnel(method).attribute(
            inputs, target=batch.labels, nt_type=kind, nt_samples=SAMPLES, nt_samples_batch_size=1,
            stdevs=SIGMA[base], **options,
        )  # fmt: skip


def seconds(work: Callable[[], object], repeats: int = 3) -> float:
    best = float("inf")
    for _ in range(repeats):
        start = perf_counter()
        work()
        best = min(best, perf_counter() - start)
    return best


def main() -> None:
    warnings.simplefilter("ignore")
    model, batch = subject(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
    eight = rw.attributions.paper_methods(STEPS, SAMPLES, SAMPLES)
    key = Key(0)
    print(f"{torch.get_num_threads()} threads, ResNet-20, {IMAGES} images, {STEPS} steps, {SAMPLES} samples")
    print(f"{'SG, SQ and Var of':20} {'Captum':>8} {'ours':>8} {'ratio':>6}")
    for base in ("IG", "GB"):
        three = {name: method for name, method in eight.items() if name.startswith(f"{base}-")}
        theirs = seconds(lambda base=base: with_captum(model, batch, base, ("smoothgrad", "smoothgrad_sq", "vargrad")))
        ours = seconds(lambda three=three: explain(three, model, batch, key))
        print(f"{base:20} {theirs:8.2f} {ours:8.2f} {theirs / ours:6.2f}")


if __name__ == "__main__":
    main()
