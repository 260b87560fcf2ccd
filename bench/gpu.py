"""A sweep on a GPU against the CPU, and against bare forward passes there: measured on the machine that has one.

python bench/gpu.py                # every table; needs CUDA
python bench/gpu.py --device cpu   # the same code on the CPU with few images, to see that it runs

Wall seconds between two synchronizations of the device, best of several runs; peak memory as torch counts it.
"""

import argparse
import platform
from collections.abc import Callable
from functools import partial
from itertools import product
from time import perf_counter

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

import roadworthy as rw
from roadworthy.core.masks import MASKS, removed_at
from roadworthy.core.random import Key
from roadworthy.core.types import Batch
from roadworthy.evaluation.no_retrain import NoRetrain
from roadworthy.evaluation.orders import least_relevant_first, most_relevant_first, rank
from roadworthy.evaluation.sweep import Curve, sweep
from roadworthy.imputers.solvers import multigrid, multigrid_torch
from roadworthy.models import cifar_resnet, resnet18
from roadworthy.models.prediction import AUTOCAST, accelerated, eval_mode, probabilities

WEIGHTS = (1 / 6, 1 / 12)
FRACTIONS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
ORDERS = {"morf": most_relevant_first, "lerf": least_relevant_first}
PASSES = len(ORDERS) * len(FRACTIONS)
CPU = torch.device("cpu")


def seconds(work: Callable[[], object], device: torch.device, repeats: int = 3) -> float:
    """Best of several runs after a first one, which loads kernels."""
    work()
    best = float("inf")
    for _ in range(repeats):
        wait(device)
        start = perf_counter()
        work()
        wait(device)
        best = min(best, perf_counter() - start)
    return best


def wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def line(*cells: object) -> None:
    print("  ".join(f"{cell!s:>12}" for cell in cells), flush=True)


def solvers(device: torch.device, quick: bool) -> None:
    """The solver alone on the device, with its memory against the stated bound, and its distance to the CPU's."""
    print("\nThe solver alone, half of the pixels removed: milliseconds per image")
    line("maps", "size", "images", "CPU", "device", "ratio", "difference", "memory/bound")
    for side, count in ((32, 16), (224, 1)) if quick else ((32, 576), (224, 48)):
        for kind, masks in MASKS.items():
            images = Key(0).uniform(range(count), (3, side, side))
            removed = removed_at(masks(range(count), (side, side), Key(1)), 0.5)
            there = partial(multigrid_torch.solve, images.to(device), removed.to(device), WEIGHTS)
            here = partial(multigrid.solve, images, removed, WEIGHTS)
            difference = float((there().cpu() - here()).abs().max())
            slow, fast = (1e3 * seconds(work, where) / count for work, where in ((here, CPU), (there, device)))
            used = memory_share(there, device, count * multigrid_torch.bytes_per_image(3, side, side))
            line(kind, side, count, f"{slow:.3f}", f"{fast:.3f}", f"{slow / fast:.1f}", f"{difference:.1e}", used)


def memory_share(work: Callable[[], object], device: torch.device, bound: int) -> str:
    if device.type != "cuda":
        return "-"
    before = torch.cuda.memory_allocated(device)
    torch.cuda.reset_peak_memory_stats(device)
    work()
    used = torch.cuda.max_memory_allocated(device) - before
    return f"{used / min(multigrid_torch.WORKING_MEMORY, bound):.2f}"


def sweeps(device: torch.device, quick: bool) -> None:
    """Both orders, all fractions, one method: the whole sweep over the bare forward passes on the same device."""
    print(
        "\nA sweep over bare forward passes: milliseconds per image and fraction; masks and classes against the CPU's"
    )
    line("model", "maps", "precision", "layout", "forward", "sweep", "ratio", "masks equal", "same classes")
    for name, network, side, size in (("ResNet-20", cifar_resnet(), 32, 256), ("ResNet-18", resnet18(), 224, 64)):
        size = 2 if quick else size
        images = Key(0).uniform(range(2 * size), (3, side, side))
        batch = Batch(torch.arange(2 * size), images, torch.zeros(2 * size, dtype=torch.int64))
        for kind, masks in MASKS.items():
            maps = -masks(batch.ids, (side, side), Key(1)).float()
            expected = predicted(rw.Normalized(network), maps, batch, size, CPU)
            for precision, last in product((None,) if quick else (None, *AUTOCAST), (False, True)):
                model = accelerated(rw.Normalized(network), AUTOCAST.get(precision or ""), last)
                forward, whole, found = timed(model, maps, batch, size, device)
                same = sum((one == other).sum() for one, other in zip(found, expected, strict=True))
                line(
                    name, kind, precision or "float32", "last" if last else "first", f"{forward:.3f}", f"{whole:.3f}",
                    f"{whole / forward:.2f}", masks_equal(maps, batch, device), f"{same / (PASSES * len(batch)):.2%}",
                )  # fmt: skip


def timed(
    model: rw.Normalized, maps: Tensor, batch: Batch, size: int, device: torch.device
) -> tuple[float, float, list[NDArray[np.int64]]]:
    """Milliseconds per image and fraction of forward passes and of the sweep, and the predicted classes."""
    pieces = [piece.images.to(device) for _, piece in batch.split(size)]

    def forwards() -> None:
        for piece in PASSES * pieces:
            probabilities(model, piece, device)

    with eval_mode(model, device):
        whole = partial(predicted, model, maps, batch, size, device)
        times = [1e3 * seconds(work, device) / PASSES / len(batch) for work in (forwards, whole)]
        return times[0], times[1], whole()


def predicted(
    model: rw.Normalized, maps: Tensor, batch: Batch, size: int, device: torch.device
) -> list[NDArray[np.int64]]:
    curves = {Curve(order, "linear", "no-retrain", 0): FRACTIONS for order in ORDERS}
    evaluators = dict.fromkeys(curves, NoRetrain(model, device))
    imputers = {"linear": rw.NoisyLinear()}
    with eval_mode(model, device):
        points = sweep(curves, ORDERS, imputers, evaluators, maps, batch, batch.labels, size, device)
        return [result.predicted for _, _, result in points]


def masks_equal(maps: Tensor, batch: Batch, device: torch.device) -> bool:
    """Of the maps, and of the same maps with half of their pixels tied."""
    for relevance in (maps, maps.clamp(min=float(maps.median()))):
        here, there = (rank(ORDERS, relevance.to(where), batch.ids, Key(0)) for where in (CPU, device))
        if not all(torch.equal(here[order], there[order].cpu()) for order in ORDERS):
            return False
    return True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    device = torch.device(parser.parse_args().device)
    if device.type == "cuda" and not torch.cuda.is_available():
        raise SystemExit("no CUDA device here: use a machine with a GPU, or --device cpu to see that the script runs")
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.processor() or "CPU"
    print(f"{name}; torch {torch.__version__}; {torch.get_num_threads()} threads")
    for table in (solvers, sweeps):
        table(device, device.type == "cpu")


if __name__ == "__main__":
    main()
