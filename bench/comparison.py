"""`compare` on precomputed maps of two methods, against the forward passes alone; and its peak memory.

python bench/comparison.py            # time
python bench/comparison.py memory     # peak memory for 10,000 images of 32 × 32

Seconds by the clock and of the processor (all threads, also those that wait actively); the latter are the ones to
compare on a machine that others use too. `OMP_WAIT_POLICY=passive` stops torch's threads from waiting actively.
"""

import os
import resource
import sys
from collections.abc import Iterator
from time import perf_counter, process_time
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import roadworthy as rw
from roadworthy.core.random import Key
from roadworthy.models import cifar_resnet, resnet18

LINE = "{model:12} {masks:8} {size:5} {clock:5} {forward:10.2f} {impute:9.3f} {share:7.1%} {ratio:8.2f}"


def now() -> NDArray[np.float64]:
    """Seconds by the clock and of the processor."""
    return np.array([perf_counter(), process_time()])


def forward_seconds(model: torch.nn.Module, images: torch.Tensor, batch: int, passes: int) -> NDArray[np.float64]:
    """Seconds for `passes` forward passes over all images."""
    with torch.no_grad():
        model(images[:batch])
        start = now()
        for _ in range(passes):
            for piece in images.split(batch):
                model(piece)
        return now() - start


class Timed:
    """Noisy Linear, with a stopwatch."""

    def __init__(self) -> None:
        self.imputer, self.seconds, self.images = rw.NoisyLinear(), np.zeros(2), 0

    def __call__(self, batch, removed, key):
        start = now()
        imputed = self.imputer(batch, removed, key)
        self.seconds += now() - start
        self.images += len(batch)
        return imputed


def measured(size: int, count: int, kind: str, rounds: int) -> Iterator[dict[str, Any]]:
    """A row by the clock and one of the processor, medians over rounds: milliseconds per image, share, whole ratio.

    Each comparison runs between two rounds of forward passes, because clock speeds drift.
    """
    name, network, batch = ("ResNet-20", cifar_resnet(), 64) if size == 32 else ("ResNet-18", resnet18(), 16)
    images = Key(0).uniform(range(count), (3, size, size))
    noise = {name: Key(1).fold(name).normal(range(count), (size, size)) for name in ("one", "other")}
    blurred = rw.attributions.controls.blurred
    maps = {name: field if kind == "scatter" else blurred(field, size / 10) for name, field in noise.items()}
    model = rw.Normalized(network).eval()
    rw.impute(rw.NoisyLinear(), images[:1], maps["one"][:1] > 0)  # compiles, or loads the compiled code
    options = {"fractions": (0.1, 0.3, 0.5, 0.7, 0.9), "controls": (), "batch_size": batch, "progress": False}
    passes = 1 + 2 * 2 * 5  # unmodified images, and two methods × two orders × five fractions
    few = 3  # passes before and after, from which those of the comparison are computed
    rows = []
    for _ in range(rounds):
        timed, before = Timed(), forward_seconds(model, images, batch, few)
        start = now()
        rw.compare(model, (images, torch.zeros(count).long()), maps, imputers={"linear": timed}, **options)
        whole = now() - start
        forward = (before + forward_seconds(model, images, batch, few)) / (2 * few * count)
        impute = timed.seconds / timed.images
        rows.append((1e3 * forward, 1e3 * impute, impute / forward, whole / (passes * count * forward)))
    for clock, (forward, impute, share, ratio) in zip(("wall", "CPU"), np.median(rows, axis=0).T, strict=True):
        yield {
            "model": name, "images": count, "masks": kind, "size": size, "threads": torch.get_num_threads(),
            "clock": clock, "forward": forward, "impute": impute, "share": share, "ratio": ratio,
        }  # fmt: skip


def memory() -> None:
    count = 10_000
    images = Key(0).uniform(range(count), (3, 32, 32))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    rw.compare(
        cifar_resnet(), (images, torch.zeros(count).long()), {"random-like": "random"}, fractions=(0.5,),
        controls=("random", "blurred", "inverted"), progress=False,
    )  # fmt: skip
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"peak memory for 10,000 images: {peak:.2f} GB; {before:.2f} GB before the comparison")


def main() -> None:
    if sys.argv[1:] == ["memory"]:
        memory()
        return
    policy = os.environ.get("OMP_WAIT_POLICY", "default")
    print(f"{torch.get_num_threads()} threads; solver {rw.NoisyLinear().solve.__module__}; OMP_WAIT_POLICY {policy}")
    print(f"{'model':12} {'maps':8} {'size':>5} {'':5} {'forward ms':>10} {'impute ms':>9} {'share':>7} {'compare':>8}")
    for kind in ("scatter", "blobs"):
        for row in (*measured(32, 256, kind, rounds=5), *measured(224, 48, kind, rounds=2)):
            print(LINE.format(**row), flush=True)


if __name__ == "__main__":
    main()
