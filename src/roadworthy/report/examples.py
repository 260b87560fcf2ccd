"""A few images as they were evaluated: what the report and the figures show of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Pixels = NDArray[np.float32]
"""`(c, h, w)` in [0, 1]; values beyond are clipped for display"""


@dataclass(frozen=True, eq=False)
class Example:
    title: str
    image: Pixels
    fractions: tuple[float, ...]
    relevance: Mapping[str, Pixels]
    """method to its ranks as gray levels, white = most relevant; the leading method comes first"""
    imputed: Mapping[tuple[str, str, str], Sequence[Pixels]]
    """(method, order, imputer) to the imputed image at each fraction"""
