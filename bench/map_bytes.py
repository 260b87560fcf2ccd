"""Can maps be stored in half the space? What float16 changes, and what lossless forms need, on the sample images.

python bench/map_bytes.py [--images 32]
"""

import argparse
import zlib

import numpy as np
import torch

import roadworthy as rw
from roadworthy.attributions.controls import Blurred
from roadworthy.core.random import Key
from roadworthy.evaluation.sweep import explain
from roadworthy.models.prediction import eval_mode

METHODS = {
    "gradient": rw.attributions.Gradient(),
    "IG": rw.attributions.IntegratedGradients(steps=8),
    "GB": rw.attributions.GuidedBackprop(),
}


def dense_ranks(maps: np.ndarray) -> np.ndarray:
    """Equal values share a rank, so order and ties are kept exactly; 16 bits up to 65,536 pixels."""
    return np.stack([np.unique(one, return_inverse=True)[1].reshape(one.shape) for one in maps]).astype(np.uint16)


def moved(maps: np.ndarray, other: np.ndarray) -> float:
    """The share of pixels whose place in the order changes, ties broken by position."""
    places = [
        np.argsort(np.argsort(each.reshape(len(each), -1), axis=1, kind="stable"), axis=1) for each in (maps, other)
    ]
    return float((places[0] != places[1]).mean())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--images", type=int, default=32)
    count = parser.parse_args().images
    torch.set_num_threads(1)
    model = rw.models.resnet20_cifar10()
    batch = next(rw.datasets.first(rw.datasets.CIFAR10Sample(), count).batches(count))
    print(
        "| method | float32 | float16: pixels that change place | 16-bit ranks | float32, deflated | ranks, deflated |"
    )
    print("|---|---|---|---|---|---|")
    with eval_mode(model, torch.device("cpu")):
        found = explain(METHODS, model, batch, Key(0))
    for name, maps in found.items():
        values = np.asarray(getattr(maps, "maps", maps), np.float32)
        half = values / np.abs(values).max(axis=(1, 2), keepdims=True)  # float16 has no room for tiny values
        ranks, size = dense_ranks(values), values[0].nbytes
        deflated = [len(zlib.compress(array.tobytes(), 6)) / count for array in (values, ranks)]
        assert moved(values, ranks) == 0
        print(
            f"| {name} | {size:,} B | {moved(values, half.astype(np.float16).astype(np.float32)):.1%} | "
            f"{ranks[0].nbytes / size:.0%} | {deflated[0] / size:.0%} | {deflated[1] / size:.0%} |"
        )
    blurred = Blurred.sigma
    print(f"\nblurred copies (σ = {blurred}) are computed from values: of ranks they would be another map")


if __name__ == "__main__":
    main()
