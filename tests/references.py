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


def literal_gamma(images: NDArray[np.float32], labels: NDArray[np.int64], removed: NDArray[np.bool_]) -> float:
    """γ as it is defined: every image minus the mean image of its class, filled, summed over what was removed."""
    missed = spread = 0.0
    for image, label, hole in zip(images, labels, removed, strict=True):
        centred = image - images[labels == label].astype(np.float64).mean(axis=0)
        filled = dense_fill(centred, hole)
        for channel, i, j in np.ndindex(image.shape):
            if hole[i, j]:
                missed += (centred[channel, i, j] - filled[channel, i, j]) ** 2
                spread += centred[channel, i, j] ** 2
    return missed / spread


def literal_identity(joint: NDArray[np.float64]) -> dict[str, float]:
    """The four terms from entropies of sums alone: I(A;B|Z) = H(A,Z) + H(B,Z) − H(A,B,Z) − H(Z)."""

    def entropy(*kept: int) -> float:
        sums: dict[tuple[int, ...], float] = {}
        for place in np.ndindex(joint.shape):
            part = tuple(place[axis] for axis in kept)
            sums[part] = sums.get(part, 0.0) + joint[place]
        return -sum(p * np.log2(p) for p in sums.values() if p > 0)

    label, mask, image = 0, 1, 2
    return {
        "outcome": entropy(label) + entropy(image) - entropy(label, image),
        "feature": entropy(label, mask) + entropy(image, mask) - entropy(label, mask, image) - entropy(mask),
        "mask": entropy(label) + entropy(mask) - entropy(label, mask),
        "mitigator": entropy(label, image) + entropy(mask, image) - entropy(label, mask, image) - entropy(image),
    }
