"""Solvers of Noisy Linear imputation in one run: those of other packages, our direct solver and multigrid.

    python bench/imputation.py          real attribution maps if ROADWORTHY_DATA names the data

Milliseconds per image and fraction (three channels), best of several runs; ratios are of sums over fractions.
"""

import os
import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from time import perf_counter

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter
from scipy.sparse import csc_matrix, lil_matrix
from scipy.sparse.linalg import spsolve
from torch.nn.functional import interpolate

from roadworthy.attributions import IntegratedGradients
from roadworthy.core.random import Key
from roadworthy.datasets import CIFAR10
from roadworthy.imputers.solvers import direct, multigrid, multigrid_torch
from roadworthy.models import resnet20_cifar10

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from references import literal_fill

WEIGHTS = (1 / 6, 1 / 12)
FRACTIONS = (0.1, 0.3, 0.5, 0.7, 0.9)
Impute = Callable[[NDArray[np.float32], NDArray[np.bool_]], object]
"""images (n, c, h, w) and removed (n, h, w) to anything"""


def impute_by_neighbors(image: NDArray[np.float32], removed: NDArray[np.bool_]) -> NDArray[np.float64]:
    """The fastest form in other packages: a lil_matrix built neighbor by neighbor with index arrays, then spsolve."""
    height, width = removed.shape
    rows, columns = np.nonzero(removed)
    number = np.cumsum(removed).reshape(removed.shape) - 1
    matrix, right = lil_matrix((len(rows), len(rows))), np.zeros((len(rows), len(image)))
    total = np.zeros(len(rows))
    for down in (-1, 0, 1):
        for across in (-1, 0, 1):
            weight = WEIGHTS[abs(down) + abs(across) - 1] if down or across else 0.0
            i, j = rows + down, columns + across
            inside = np.flatnonzero((weight > 0) & (i >= 0) & (i < height) & (j >= 0) & (j < width))
            total[inside] += weight
            is_removed = removed[i[inside], j[inside]]
            unknown, known = inside[is_removed], inside[~is_removed]
            matrix[unknown, number[i[unknown], j[unknown]]] = -weight
            right[known] += weight * image[:, i[known], j[known]].T
    matrix[np.arange(len(rows)), np.arange(len(rows))] = total
    imputed = image.astype(np.float64)
    imputed[:, removed] = spsolve(csc_matrix(matrix), right).reshape(len(rows), -1).T
    return imputed


def one_by_one(impute: Callable[..., object], images: NDArray[np.float32], removed: NDArray[np.bool_]) -> None:
    for image, mask in zip(images, removed, strict=True):
        impute(image, mask)


def batched(solve: Callable[..., object], images: NDArray[np.float32], removed: NDArray[np.bool_]) -> None:
    solve(torch.from_numpy(images), torch.from_numpy(removed), WEIGHTS)


METHODS: dict[str, tuple[Impute, int, int]] = {
    # name: function, images of 32 × 32, images of 224 × 224
    "literal": (partial(one_by_one, literal_fill), 1, 1),
    "neighbors": (partial(one_by_one, impute_by_neighbors), 2, 1),
    "direct": (partial(batched, direct.solve), 4, 1),
    "multigrid": (partial(batched, multigrid.solve), 256, 8),
    "multigrid_torch": (partial(batched, multigrid_torch.solve), 64, 2),
}


def noisy_maps(rng: np.random.Generator, size: int) -> NDArray[np.float64]:
    """As from gradient methods: grains of a pixel or two on a faint object."""
    grains = gaussian_filter(rng.standard_normal((size, size)), 0.7)
    haze = gaussian_filter(rng.standard_normal((size, size)), size / 8)
    return grains / grains.std() + 0.7 * haze / haze.std()


def smooth_maps(rng: np.random.Generator, size: int) -> NDArray[np.float64]:
    """As from CAMs: a few blobs."""
    return gaussian_filter(rng.standard_normal((size, size)), size / 10)


def ig_maps(size: int) -> list[NDArray[np.float64]]:
    """Real maps: Integrated Gradients of a ResNet-20 on the first CIFAR-10 test images, upsampled where needed."""
    root = Path(os.environ["ROADWORTHY_DATA"])
    model = resnet20_cifar10(root / "weights" / "resnet20_cifar10.safetensors")
    batch = next(CIFAR10(root).batches(16))
    maps = IntegratedGradients(8)(model, batch, Key(0))[:, None]
    return list(interpolate(maps, size=(size, size), mode="bilinear")[:, 0].double().numpy())


def removed_at(relevance: NDArray[np.float64], fraction: float) -> NDArray[np.bool_]:
    ranks = np.argsort(np.argsort(-relevance, axis=None)).reshape(relevance.shape)
    return ranks < int(fraction * relevance.size + 0.5)


def smooth_images(rng: np.random.Generator, count: int, size: int) -> NDArray[np.float32]:
    layers = [gaussian_filter(rng.standard_normal((count, 3, size, size)), (0, 0, s, s)) * s for s in (0.5, 2, 6)]
    images = np.sum(layers, axis=0)
    return ((images - images.min()) / np.ptp(images)).astype(np.float32)


def milliseconds(impute: Impute, images: NDArray[np.float32], removed: NDArray[np.bool_], repeats: int) -> float:
    best = np.inf
    for _ in range(repeats):
        start = perf_counter()
        impute(images, removed)
        best = min(best, perf_counter() - start)
    return 1e3 * best / len(images)


def table(size: int, kind: str) -> None:
    rng = np.random.default_rng(0)
    images = smooth_images(rng, 16, size)
    maps = ig_maps(size) if kind == "IG maps" else [MAPS[kind](rng, size) for _ in range(16)]
    sums = {}
    for name, (impute, *counts) in METHODS.items():
        count = counts[size > 100]
        row = []
        for fraction in FRACTIONS:
            removed = np.stack([removed_at(maps[i % 16], fraction) for i in range(count)])
            repeats = 5 if count > 4 else 1
            row.append(milliseconds(impute, images[np.arange(count) % 16], removed, repeats))
        sums[name] = sum(row)
        cells = " ".join(f"{value:9.3f}" for value in row)
        ratio = " ".join(f"{sums[other] / sums[name]:8.1f}" for other in ("literal", "neighbors") if other in sums)
        print(f"{size:4d}  {kind:14s} {name:16s} {cells}   {sums[name] / len(row):9.3f}  {ratio}")


MAPS = {"grains": noisy_maps, "blobs": smooth_maps}


def other_packages() -> None:
    """Their own functions need torchvision, which cannot be imported with every version of torch."""
    for name in ("quantus", "pytorch_grad_cam"):
        try:
            import_module(name)
        except Exception as error:  # whatever a broken install raises
            print(f"{name}: missing ({type(error).__name__}: {error}); its method is the row 'neighbors' or 'literal'")
        else:
            print(f"{name}: importable; its method is the row 'neighbors' or 'literal'")


def growth() -> None:
    rng = np.random.default_rng(0)
    print("\n size   ms per image   ns per pixel      (multigrid, one image, 50 % removed, noisy maps)")
    for size in (32, 64, 128, 256, 512, 1024, 2048):
        image, removed = smooth_images(rng, 1, size), removed_at(noisy_maps(rng, size), 0.5)[None]
        time = milliseconds(METHODS["multigrid"][0], image, removed, 5 if size < 1000 else 2)
        print(f"{size:5d} {time:12.3f} {1e6 * time / size**2:12.1f}")


def main() -> None:
    print(f"{torch.get_num_threads()} threads; milliseconds per image; ratios to literal and to neighbors")
    print(
        "size  maps           method           " + " ".join(f"{f:9.1f}" for f in FRACTIONS) + "        mean     ratios"
    )
    batched(
        multigrid.solve, np.zeros((1, 1, 8, 8), np.float32), np.eye(8, dtype=bool)[None]
    )  # compiles, or loads the compiled code
    for size in (32, 224):
        for kind in ("IG maps" if "ROADWORTHY_DATA" in os.environ else "grains", "blobs"):
            table(size, kind)
    other_packages()
    growth()


if __name__ == "__main__":
    main()
