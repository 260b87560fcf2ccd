"""What plans/imagenet.toml and plans/imagenet-vit.toml would cost: timed stand-ins here, arithmetic for a cluster.

Random weights and images of noise take as long as real ones. Timed are the forward pass, the forward-backward pass to
the input, and one imputation, per image of 224 pixels, in CPU seconds of one thread; the counts come from the plans.
The GPU's rates are assumptions, not measured.

python bench/imagenet.py [--images 4]
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import torch

import roadworthy as rw
from roadworthy.experiments.plans import Plan, read_plan

PLANS = Path(__file__).parents[1] / "plans"
IMAGES = 50_000
PASSES = {"imagenet": 50 + 15 * 50 + 1 + 100, "imagenet-vit": 50 + 15 * 50 + 2 + 2 * 25}
"""forward-backward passes per image, of all methods together: samples are shared"""
GPUS, FORWARD, BACKWARD, IMPUTED = 64, 2000.0, 600.0, 4000.0
"""ASSUMED: GPUs; images per second of one: forward, forward-backward, imputed on the GPU"""
MAP_BYTES, IMAGES_PER_BLOCK = 224 * 224 * 4, 128


def seconds_each(action: Callable[[], object], images: int, repeats: int = 2) -> float:
    """CPU seconds per image, of the fastest repeat; the first is not timed."""
    action()
    times = []
    for _ in range(repeats):
        started = time.process_time()
        action()
        times.append(time.process_time() - started)
    return min(times) / images


def forward(network: torch.nn.Module, images: torch.Tensor) -> None:
    with torch.inference_mode():
        network(images)


def backward(network: torch.nn.Module, images: torch.Tensor) -> None:
    inputs = images.clone().requires_grad_()
    torch.autograd.grad(network(inputs)[:, 0].sum(), inputs)


def networks() -> dict[str, torch.nn.Module]:
    import timm

    names = {"imagenet": "resnet50", "imagenet-vit": "vit_base_patch16_224"}
    return {plan: timm.create_model(name, pretrained=False).eval() for plan, name in names.items()}


def evaluations(plan: Plan) -> dict[str, int]:
    """Forward passes per image after removal, by imputer."""
    points = len(plan.methods) * len(plan.orders) * len(plan.seeds) * sum(f > 0 for f in plan.fractions)
    return dict.fromkeys(plan.imputers, points)


def days(seconds: float) -> str:
    return f"{seconds / 86400:,.1f} days" if seconds > 86400 else f"{seconds / 3600:,.1f} h"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--images", type=int, default=4, help="of the batch that is timed")
    count = parser.parse_args().images
    torch.set_num_threads(1)
    images = torch.rand(count, 3, 224, 224, generator=torch.Generator().manual_seed(0))
    removed = torch.rand(count, 224, 224, generator=torch.Generator().manual_seed(1)) < 0.5
    imputers = {"linear": rw.NoisyLinear(), "blur": rw.imputers.Blur(), "fixed": rw.imputers.Constant(0.5)}
    filled = {
        name: seconds_each(lambda each=each: rw.impute(each, images, removed), count) for name, each in imputers.items()
    }
    print("imputation:", ", ".join(f"{name} {1e3 * each:.1f} CPU ms per image" for name, each in filled.items()))
    for name, network in networks().items():
        plan = read_plan(PLANS / f"{name}.toml")
        points = evaluations(plan)
        once = seconds_each(lambda network=network: forward(network, images), count)
        both = seconds_each(lambda network=network: backward(network, images), count)
        maps, total = IMAGES * PASSES[name] * both, sum(points.values())
        predicted = IMAGES * total * once
        imputed = IMAGES * sum(number * filled[imputer] for imputer, number in points.items())
        blocks = -(-IMAGES // IMAGES_PER_BLOCK)
        gpu_maps = IMAGES * PASSES[name] / BACKWARD / GPUS
        gpu_points = IMAGES * total * (1 / FORWARD + 1 / IMPUTED) / GPUS
        print(
            f"{name}: forward {1e3 * once:.0f}, forward-backward {1e3 * both:.0f} CPU ms per image\n"
            f"  one core here: maps {days(maps)} ({PASSES[name]} passes per image), predictions {days(predicted)} "
            f"({total:,} per image), imputation {days(imputed)}; together {days(maps + predicted + imputed)}\n"
            f"  {GPUS} GPUs (assumed: {FORWARD:,.0f} forward, {BACKWARD:,.0f} forward-backward, {IMPUTED:,.0f} imputed "
            f"images/s each; not measured): maps {days(gpu_maps)}, points {days(gpu_points)}\n"
            f"  {blocks * (1 + len(plan.methods) + total):,} items, maps {IMAGES * 8 * MAP_BYTES / 1e9:.0f} GB",
            flush=True,
        )


if __name__ == "__main__":
    main()
