"""When a comparison may stop early: the rule, and which pairs it leaves undecided."""

from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray


class StoppingRule(NamedTuple):
    """The rule of early stopping. All bounds computed under it are valid at any stopping time."""

    confidence: float
    margin: float
    """scores that differ by less than this, with the given confidence, are tied"""
    comparisons: int
    """comparisons that share the error (Bonferroni): all pairs in every block, including controls that are added after
    stopping"""


def undecided(table: pd.DataFrame) -> NDArray[np.bool_]:
    """The pairs that are neither clearly different nor tied within the margin."""
    return ~((table["low"] > 0) | table["tie"]).to_numpy(dtype=bool)
