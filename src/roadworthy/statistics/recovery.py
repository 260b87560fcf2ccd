"""How far scores recover a known order: pairs in the right order, Spearman's coefficient, the whole order."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from roadworthy.statistics.correlation import spearman


class Recovery(NamedTuple):
    """Of one ranking. Pairs that are truly tied do not count."""

    whole: bool
    """every pair is in the right order"""
    pairs: float
    """share of pairs in the right order; a tie counts half"""
    spearman: float
    """with the true ranks; 0 where all scores are equal"""


def recovery(scores: Mapping[str, float], order: Sequence[Sequence[str]]) -> Recovery:
    """Compare `scores`, higher is better, with a true `order`: groups of names, best first.

    >>> recovery({"a": 3.0, "b": 1.0, "c": 2.0}, [["a"], ["b"], ["c"]])
    Recovery(whole=False, pairs=0.6666666666666666, spearman=0.5)
    """
    true_rank = {name: rank for rank, group in enumerate(order) for name in group}
    signs = [
        float(np.sign(scores[better] - scores[worse]))
        for better, worse in combinations(true_rank, 2)
        if true_rank[better] < true_rank[worse]
    ]
    measured = np.array([scores[name] for name in true_rank])
    correlation = spearman(measured, -np.array(list(true_rank.values()), dtype=float))
    return Recovery(min(signs) > 0, float(np.mean(np.array(signs) + 1) / 2), float(np.nan_to_num(correlation)))
