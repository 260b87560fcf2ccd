"""How much information an accuracy proves, for c equally likely classes (`PAPER` 6), in bits."""

import numpy as np

from roadworthy.statistics.intervals import Array


def least_bits(accuracy: Array, classes: int) -> Array:
    """Fano: whoever reaches this accuracy has at least so much; for two classes 1 − H₂(accuracy). Chance proves 0.

    >>> least_bits(np.array([0.5, 0.89, 1.0]), 2).round(2).tolist()  # H₂(.11) is 0.5
    [0.0, 0.5, 1.0]
    """
    hit = np.clip(accuracy, 1 / classes, 1)
    miss = 1 - hit
    with np.errstate(divide="ignore", invalid="ignore"):
        doubt = -hit * np.log2(hit) - np.where(miss > 0, miss * np.log2(miss), 0.0)
    return np.asarray(np.log2(classes) - doubt - miss * np.log2(classes - 1))


def most_bits(accuracy: Array, classes: int) -> Array:
    """Hellman and Raviv: who has more could be more accurate than that; for two classes 2·accuracy − 1.

    It holds for the best possible classifier only.

    >>> most_bits(np.array([0.5, 0.75, 1.0]), 2).tolist()
    [0.0, 0.5, 1.0]
    """
    return np.asarray(np.log2(classes) - 2 * (1 - np.clip(accuracy, 1 / classes, 1)))
