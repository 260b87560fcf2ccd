"""The paper, slowly and literally: double loops and general solvers that fast code is compared with."""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_matrix, lil_matrix
from scipy.sparse.linalg import spsolve

PAPER_WEIGHTS = (1 / 6, 1 / 12)
_NEIGHBOURS = [(di, dj) for di in (-1, 0, 1) for dj in (-1, 0, 1) if (di, dj) != (0, 0)]


def literal_fill(
    image: NDArray[np.float32], removed: NDArray[np.bool_], weights: tuple[float, float] = PAPER_WEIGHTS
) -> NDArray[np.float64]:
    """The peers' way: one sparse matrix per image, written entry by entry, and one sparse LU (`spsolve`)."""
    matrix, right, unknowns = _equations(image, removed, weights, lil_matrix)
    return _filled(image, unknowns, spsolve(csc_matrix(matrix), right))


def dense_fill(
    image: NDArray[np.float32], removed: NDArray[np.bool_], weights: tuple[float, float] = PAPER_WEIGHTS
) -> NDArray[np.float64]:
    """The same equations, solved by dense elimination in float64."""
    matrix, right, unknowns = _equations(image, removed, weights, np.zeros)
    return _filled(image, unknowns, np.linalg.solve(matrix, right))


def _equations(image, removed, weights, empty):
    """Σ_neighbours weight·(x − neighbour) = 0 at each removed pixel; kept neighbours go to the right-hand side."""
    channels, height, width = image.shape
    unknowns = [(i, j) for i in range(height) for j in range(width) if removed[i, j]]
    number = {pixel: k for k, pixel in enumerate(unknowns)}
    matrix, right = empty((len(unknowns), len(unknowns))), np.zeros((len(unknowns), channels))
    for k, (i, j) in enumerate(unknowns):
        for di, dj in _NEIGHBOURS:
            if 0 <= i + di < height and 0 <= j + dj < width:
                weight = weights[0] if di == 0 or dj == 0 else weights[1]
                matrix[k, k] += weight
                if removed[i + di, j + dj]:
                    matrix[k, number[i + di, j + dj]] = -weight
                else:
                    right[k] += weight * image[:, i + di, j + dj].astype(np.float64)
    return matrix, right, unknowns


def _filled(image, unknowns, solution):
    filled = image.astype(np.float64)
    for (i, j), value in zip(unknowns, solution.reshape(len(unknowns), -1), strict=True):
        filled[:, i, j] = value
    return filled


def literal_gain_losses(painted, finding, fooling, image, removed):
    """One image, pixel by pixel: cross-entropy on the mask; −log D(kept) on the holes; squared errors of both kinds."""
    channels, height, width = image.shape
    found, fooled, kept, gone = [], [], [], []
    for i in range(height):
        for j in range(width):
            says_removed = 1 / (1 + np.exp(-finding[i, j]))
            found.append(-np.log(says_removed if removed[i, j] else 1 - says_removed))
            error = sum((painted[c, i, j] - image[c, i, j]) ** 2 for c in range(channels)) / channels
            (gone if removed[i, j] else kept).append(error)
            if removed[i, j]:
                fooled.append(-np.log(1 - 1 / (1 + np.exp(-fooling[i, j]))))
    return np.mean(found), np.mean(fooled), np.mean(kept), np.mean(gone)
