"""The reference solver of Noisy Linear: one banded Cholesky per image, exact to rounding in float64.

The matrix is symmetric positive definite as long as one pixel is kept. With unknowns in raster order along the longer
side, the bandwidth is about the shorter side; if the band would not fit into memory, sparse LU is used instead.
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
    """Fill each image exactly; kept pixels stay bit-equal, the input is not modified."""
    pixels, masks = images.detach().cpu().numpy(), removed.cpu().numpy()
    planes = [_fill(image, mask, weights) for image, mask in zip(pixels, masks, strict=True)]
    filled = torch.from_numpy(np.stack(planes)).to(images.device)
    return noise.added(filled, removed) if noise else filled


def _fill(image: NDArray[np.float32], removed: NDArray[np.bool_], weights: tuple[float, float]) -> NDArray[np.float32]:
    """One image `(c, h, w)`: A x = b over the removed pixels, channels as right-hand sides."""
    if not removed.any():
        return image.copy()
    if removed.shape[1] > removed.shape[0]:  # raster order along the longer side keeps the band narrow
        return _fill(image.transpose(0, 2, 1), removed.T, weights).transpose(0, 2, 1)
    first, second, weight = _edges(removed.shape, weights)
    number = np.cumsum(removed.ravel()) - 1
    values = image.reshape(len(image), -1).T.astype(np.float64)
    unknown = removed.ravel()

    diagonal = np.zeros(unknown.size)
    for end in (first, second):
        diagonal += np.bincount(end, weight, unknown.size)
    known = np.zeros((unknown.size, values.shape[1]))
    for pixel, neighbor in ((first, second), (second, first)):
        rim = unknown[pixel] & ~unknown[neighbor]
        np.add.at(known, pixel[rim], weight[rim, None] * values[neighbor[rim]])
    inner = unknown[first] & unknown[second]
    solution = _solve_symmetric(
        diagonal[unknown], number[first[inner]], number[second[inner]], -weight[inner], known[unknown]
    )
    filled = image.copy().reshape(len(image), -1)
    filled[:, unknown] = solution.T
    return filled.reshape(image.shape)


def _edges(shape: tuple[int, int], weights: tuple[float, float]) -> tuple[NDArray[np.int64], NDArray[np.int64], Array]:
    """Each pair of neighbors once, `first` before `second` in raster order, with its weight."""
    index = np.arange(shape[0] * shape[1]).reshape(shape)

    def pairs() -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], float]]:
        for down, right, kind in _DIRECTIONS:
            pixels = index[: shape[0] - down, max(0, -right) : shape[1] - max(0, right)]
            neighbors = index[down:, max(0, right) : shape[1] + min(0, right)]
            yield pixels.ravel(), neighbors.ravel(), weights[kind]

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
