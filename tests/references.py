"""Slow, literal implementations of the paper (double loops, general solvers) to compare fast code with."""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_matrix, lil_matrix
from scipy.sparse.linalg import spsolve

PAPER_WEIGHTS = (1 / 6, 1 / 12)
_NEIGHBORS = [(di, dj) for di in (-1, 0, 1) for dj in (-1, 0, 1) if (di, dj) != (0, 0)]


def literal_fill(
    image: NDArray[np.float32], removed: NDArray[np.bool_], weights: tuple[float, float] = PAPER_WEIGHTS
) -> NDArray[np.float64]:
    """As other implementations do it: one sparse matrix per image, built entry by entry, and `spsolve`."""
    matrix, right, unknowns = _equations(image, removed, weights, lil_matrix)
    return _filled(image, unknowns, spsolve(csc_matrix(matrix), right))


def dense_fill(
    image: NDArray[np.float32], removed: NDArray[np.bool_], weights: tuple[float, float] = PAPER_WEIGHTS
) -> NDArray[np.float64]:
    """The same equations, solved by dense elimination in float64."""
    matrix, right, unknowns = _equations(image, removed, weights, np.zeros)
    return _filled(image, unknowns, np.linalg.solve(matrix, right))


def _equations(image, removed, weights, empty):
    """Σ_neighbors weight·(x − neighbor) = 0 at each removed pixel; kept neighbors go to the right-hand side."""
    channels, height, width = image.shape
    unknowns = [(i, j) for i in range(height) for j in range(width) if removed[i, j]]
    number = {pixel: k for k, pixel in enumerate(unknowns)}
    matrix, right = empty((len(unknowns), len(unknowns))), np.zeros((len(unknowns), channels))
    for k, (i, j) in enumerate(unknowns):
        for di, dj in _NEIGHBORS:
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
    """γ by definition: every image minus the mean image of its class, imputed, summed over removed pixels."""
    residual = variance = 0.0
    for image, label, mask in zip(images, labels, removed, strict=True):
        centered = image - images[labels == label].astype(np.float64).mean(axis=0)
        filled = dense_fill(centered, mask)
        for channel, i, j in np.ndindex(image.shape):
            if mask[i, j]:
                residual += (centered[channel, i, j] - filled[channel, i, j]) ** 2
                variance += centered[channel, i, j] ** 2
    return residual / variance


def literal_identity(joint: NDArray[np.float64]) -> dict[str, float]:
    """The four terms from joint entropies: I(A;B|Z) = H(A,Z) + H(B,Z) − H(A,B,Z) − H(Z)."""

    def entropy(*kept: int) -> float:
        sums: dict[tuple[int, ...], float] = {}
        for index in np.ndindex(joint.shape):
            marginal = tuple(index[axis] for axis in kept)
            sums[marginal] = sums.get(marginal, 0.0) + joint[index]
        return -sum(p * np.log2(p) for p in sums.values() if p > 0)

    label, mask, image = 0, 1, 2
    return {
        "outcome": entropy(label) + entropy(image) - entropy(label, image),
        "feature": entropy(label, mask) + entropy(image, mask) - entropy(label, mask, image) - entropy(mask),
        "mask": entropy(label) + entropy(mask) - entropy(label, mask),
        "mitigator": entropy(label, image) + entropy(mask, image) - entropy(label, mask, image) - entropy(image),
    }


_COLOR_VISION = {
    "normal": np.eye(3),
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
}
"""Machado, Oliveira and Fernandes (2009), full severity, on linear RGB"""


def seen_as(color, sight):
    """CIELAB of `#rrggbb` under D65, as perceived with the given color vision."""
    encoded = np.array([int(color[k : k + 2], 16) for k in (1, 3, 5)]) / 255
    linear = np.where(encoded <= 0.04045, encoded / 12.92, ((encoded + 0.055) / 1.055) ** 2.4)
    seen = np.clip(np.asarray(_COLOR_VISION[sight]) @ linear, 0, 1)
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ seen
    x, y, z = (np.cbrt(t) if t > 0.008856 else 7.787 * t + 16 / 116 for t in xyz / [0.9505, 1, 1.089])
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def literal_gain_losses(generated, detecting, fooling, image, removed):
    """One image, pixel by pixel: cross-entropy of the mask; −log D(kept) at removed pixels; MSE of kept and removed."""
    channels, height, width = image.shape
    discriminator, adversarial, kept_errors, removed_errors = [], [], [], []
    for i in range(height):
        for j in range(width):
            probability = 1 / (1 + np.exp(-detecting[i, j]))
            discriminator.append(-np.log(probability if removed[i, j] else 1 - probability))
            error = sum((generated[c, i, j] - image[c, i, j]) ** 2 for c in range(channels)) / channels
            (removed_errors if removed[i, j] else kept_errors).append(error)
            if removed[i, j]:
                adversarial.append(-np.log(1 - 1 / (1 + np.exp(-fooling[i, j]))))
    return np.mean(discriminator), np.mean(adversarial), np.mean(kept_errors), np.mean(removed_errors)
