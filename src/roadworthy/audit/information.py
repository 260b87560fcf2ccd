"""Accuracy and information: how many bits about the class C does an accuracy prove (paper, section 4 and appendix)?

Any classifier of the masks M gives a lower bound on I(C;M). An upper bound holds only if no classifier could do better.
All in bits.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

Shares = Sequence[float] | NDArray[np.float64]
"""relative frequencies of the classes; they sum to 1"""


def binary_entropy(share: float) -> float:
    """H₂, the entropy of a coin that shows heads with probability `share`.

    >>> binary_entropy(0.5), binary_entropy(1.0), round(binary_entropy(0.11), 3)
    (1.0, 0.0, 0.5)
    """
    return entropy([share, 1 - share])


def inverse_binary_entropy(bits: float) -> float:
    """H₂⁻¹ on its upper branch, to machine precision: the accuracy in [½, 1] with entropy `bits`.

    >>> inverse_binary_entropy(1.0), inverse_binary_entropy(0.0)
    (0.5, 1.0)
    """
    if bits in (0, 1):
        return 1 - bits / 2
    # H₂ is steep at 1: solving for the share of errors, a small number, keeps its digits.
    errors: float = brentq(lambda share: binary_entropy(share) - bits, 0.0, 0.5, xtol=1e-300, rtol=1e-15)
    return 1 - errors


def entropy(shares: Shares) -> float:
    """Shannon entropy in bits.

    >>> entropy([0.25, 0.25, 0.25, 0.25])
    2.0
    """
    values = np.asarray(shares, dtype=np.float64)
    values = values[values > 0]
    return float(max(0.0, -(values * np.log2(values)).sum()))


def chance(shares: Shares) -> float:
    """The accuracy of always predicting the most frequent class."""
    return float(np.max(shares))


def bits_at_least(accuracy: float, shares: Shares) -> float:
    """The information that an accuracy proves (Fano): I ≥ H(C) − H₂(e) − e·log₂(c − 1) with e = 1 − accuracy.

    For two equally frequent classes 1 − H₂(accuracy). An accuracy below chance counts as chance.

    >>> round(bits_at_least(0.89, [0.5, 0.5]), 2), bits_at_least(0.2, [0.5, 0.5])
    (0.5, 0.0)
    """
    errors = 1 - max(accuracy, chance(shares))
    others = np.count_nonzero(np.asarray(shares)) - 1
    remaining = binary_entropy(errors) + (errors * float(np.log2(others)) if others > 1 else 0.0)
    return max(0.0, entropy(shares) - remaining)


def bits_if_optimal(accuracy: float, shares: Shares) -> float:
    """The largest possible information, if no classifier could do better than this accuracy.

    For two equally frequent classes I ≤ 2·accuracy − 1 (Hellman and Raviv); for more classes Kovalevskij's bound: the
    least remaining entropy is piecewise linear in the error, through log₂ k at (k − 1)/k.

    >>> bits_if_optimal(0.75, [0.5, 0.5]), bits_if_optimal(0.25, [0.25] * 4)
    (0.5, 0.0)
    """
    counts = np.arange(1, np.count_nonzero(np.asarray(shares)) + 1)
    remaining = float(np.interp(1 - max(accuracy, chance(shares)), (counts - 1) / counts, np.log2(counts)))
    return max(0.0, entropy(shares) - remaining)


def optimal_accuracy(bits: float) -> tuple[float, float]:
    """Bounds on the best accuracy for two equally frequent classes, if the masks carry `bits`.

    (I + 1)/2 ≤ accuracy ≤ H₂⁻¹(1 − I) (paper, appendix).

    >>> optimal_accuracy(1.0), optimal_accuracy(0.0)
    ((1.0, 1.0), (0.5, 0.5))
    """
    return (bits + 1) / 2, inverse_binary_entropy(1 - bits)
