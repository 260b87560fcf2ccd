"""The reference solver of Noisy Linear: one banded Cholesky per image, exact to rounding in float64.

The matrix is symmetric positive definite as long as one pixel is kept. Unknowns in raster order along the longer side
give a band of about the shorter side; where that band would be too large for memory, sparse LU takes over.
"""

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.linalg import solveh_banded
from scipy.sparse import coo_array, diags_array
from scipy.sparse.linalg import splu

from roadworthy.core.types import Images, Removed
from roadworthy.imputers.noise import Noise

Array = NDArray[np.float64]
_BAND_ENTRIES = 20_000_000
_DIRECTIONS = ((0, 1, 0), (1, 0, 0), (1, 1, 1), (1, -1, 1))
"""Half of the 8 neighbors as (down, right, is diagonal); symmetry gives the other half."""


def solve(images: Images, removed: Removed, weights: tuple[float, float], noise: Noise | None = None) -> Images:
    pixels, gone = images.detach().cpu().numpy(), removed.cpu().numpy()
    planes = [_fill(image, hole, weights) for image, hole in zip(pixels, gone, strict=True)]
    filled = torch.from_numpy(np.stack(planes)).to(images.device)
    return noise.added(filled, removed) if noise else filled


def _fill(image: NDArray[np.float32], removed: NDArray[np.bool_], weights: tuple[float, float]) -> NDArray[np.float32]:
    """One image `(c, h, w)`: A x = b over the removed pixels, channels as right-hand sides."""
    if not removed.any():
        return image.copy()
    if removed.shape[1] > removed.shape[0]:  # raster along the longer side keeps the band narrow
        return _fill(image.transpose(0, 2, 1), removed.T, weights).transpose(0, 2, 1)
    first, second, weight = _edges(removed.shape, weights)
    number = np.cumsum(removed.ravel()) - 1
    values = image.reshape(len(image), -1).T.astype(np.float64)
    gone = removed.ravel()

    diagonal = np.zeros(gone.size)
    for end in (first, second):
        diagonal += np.bincount(end, weight, gone.size)
    known = np.zeros((gone.size, values.shape[1]))
    for here, there in ((first, second), (second, first)):
        rim = gone[here] & ~gone[there]
        np.add.at(known, here[rim], weight[rim, None] * values[there[rim]])
    inner = gone[first] & gone[second]
    solution = _solve_symmetric(
        diagonal[gone], number[first[inner]], number[second[inner]], -weight[inner], known[gone]
    )
    filled = image.copy().reshape(len(image), -1)
    filled[:, gone] = solution.T
    return filled.reshape(image.shape)


def _edges(shape: tuple[int, int], weights: tuple[float, float]) -> tuple[NDArray[np.int64], NDArray[np.int64], Array]:
    """Each pair of neighbors once, `first` before `second` in raster order, with its weight."""
    index = np.arange(shape[0] * shape[1]).reshape(shape)

    def pairs() -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], float]]:
        for down, right, kind in _DIRECTIONS:
            here = index[: shape[0] - down, max(0, -right) : shape[1] - max(0, right)]
            there = index[down:, max(0, right) : shape[1] + min(0, right)]
            yield here.ravel(), there.ravel(), weights[kind]

    first, second, weight = zip(*((a, b, np.full(a.size, w)) for a, b, w in pairs()), strict=True)
    return np.concatenate(first), np.concatenate(second), np.concatenate(weight)


def _solve_symmetric(
    diagonal: Array, first: NDArray[np.int64], second: NDArray[np.int64], off: Array, known: Array
) -> Array:
    """Solve with `diagonal` on the diagonal and `off` at (first, second) and (second, first); first < second."""
    size, band = len(diagonal), int((second - first).max(initial=0))
    if size * (band + 1) <= _BAND_ENTRIES:
        lower = np.zeros((band + 1, size))
        lower[0] = diagonal
        lower[second - first, first] = off
        return np.asarray(solveh_banded(lower, known, lower=True, overwrite_ab=True, check_finite=False))
    half = coo_array((off, (first, second)), shape=(size, size))
    matrix = (half + half.T + diags_array(diagonal)).tocsc()
    return np.asarray(splu(matrix, permc_spec="MMD_AT_PLUS_A", options={"SymmetricMode": True}).solve(known))
