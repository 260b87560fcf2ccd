"""When more noisy samples would hardly change the ranks of an image's pixels."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from torch import Tensor

from roadworthy.attributions.maps import reduced
from roadworthy.core.errors import RangeError

FIRST = 4
"""samples before the first look; each further look is after twice as many"""


def check_converged(converged: float | None) -> None:
    if converged is not None and not 0 < converged <= 1:
        raise RangeError(f"converged={converged}: a rank correlation in (0, 1], such as 0.95, or None for all samples")


def rounds(samples: int) -> Iterator[range]:
    """The samples between two looks.

    >>> list(rounds(15))
    [range(0, 4), range(4, 8), range(8, 15)]
    """
    start, stop = 0, FIRST
    while start < samples:
        yield range(start, min(stop, samples))
        start, stop = stop, 2 * stop


def reliability(one: Tensor, other: Tensor) -> NDArray[np.float64]:
    """Per image, how alike the ranks of all samples and of as many new ones would be, from the maps of two halves.

    The rank correlation r of the halves becomes 2r ÷ (1 + r) for twice as many samples (Spearman-Brown). Channels are
    summed; ties get their mean rank. Halves that rank nothing have a reliability of 0.
    """
    ranks = [stats.rankdata(reduced(maps, "sum").flatten(1).cpu().numpy(), axis=1) for maps in (one, other)]
    a, b = (one - one.mean(axis=1, keepdims=True) for one in ranks)
    lengths = np.sqrt((a**2).sum(axis=1) * (b**2).sum(axis=1))
    r = np.divide((a * b).sum(axis=1), lengths, out=np.zeros(len(a)), where=lengths > 0).clip(min=0)
    return np.asarray(2 * r / (1 + r))
