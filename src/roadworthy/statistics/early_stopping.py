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
    """comparisons that share the error (Bonferroni): all pairs in every block that tables may ever show, also of two
    controls, and of copies that are added after stopping, whichever methods turn out to lead"""


def undecided(table: pd.DataFrame) -> NDArray[np.bool_]:
    """The pairs that are neither clearly different nor tied within the margin.

    A pair of two controls never counts: nobody asks which control is the better one.
    """
    open_pairs = ~((table["low"] > 0) | table["tie"]).to_numpy(dtype=bool)
    return np.asarray(open_pairs & ~(table["control_a"] & table["control_b"]).to_numpy(dtype=bool))
