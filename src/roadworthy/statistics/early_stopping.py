"""When a comparison may stop early: the rule, and which pairs it leaves undecided."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from roadworthy.core.streams import stream, stream_key


class ErrorShares(NamedTuple):
    """How the error, 1 − confidence, is divided. The parts add up to 1, so that all statements hold together."""

    decision: float
    """for the question of the rule: which method is the best, or the order of all"""
    bounds: float
    """for the bounds of the pairs that the question is about, which show ties"""
    others: float
    """for the bounds of all other pairs: of two controls, and of copies"""


SHARES = {"best": ErrorShares(0.7, 0.2, 0.1), "ranked": ErrorShares(0.5, 0.4, 0.1)}


class StoppingRule(NamedTuple):
    """The rule of early stopping. All bounds computed under it are valid at any stopping time."""

    confidence: float
    margin: float
    """scores that differ by less than this, with the given confidence, are tied"""
    comparisons: int
    """all pairs in every block that tables may ever show, also of two controls, and of copies that are added after
    stopping, whichever methods turn out to lead"""
    until: str = "ranked"
    """the question: "best" or "ranked" """
    methods: tuple[str, ...] = ()
    """the user's. Without them, as in files of earlier versions, all pairs share the error equally."""
    controls: tuple[str, ...] = ()
    """the blind ones, which are evaluated with the methods; copies come after the stop"""
    blocks: int = 1
    """in each of them the question is asked"""
    images: int = 0
    """of the data set"""
    seed: int | None = None
    """of the order in which images are taken; None: predictions are given in that order"""
    finite: bool = False
    """statements are about the mean of these `images`, not of the population from which they are a random sample"""

    @property
    def candidates(self) -> tuple[str, ...]:
        return (*self.methods, *self.controls)

    @property
    def shares(self) -> ErrorShares:
        return SHARES[self.until]

    @property
    def deciding_pairs(self) -> int:
        """Pairs that the question is about: all candidates, but not two controls."""
        count, controls = len(self.candidates), len(self.controls)
        return self.blocks * (count * (count - 1) - controls * (controls - 1)) // 2

    def error_of(self, one: str, other: str) -> float:
        """The error of the bounds of a pair, both ends together."""
        error, shares = 1 - self.confidence, self.shares
        if not self.methods:
            return error / self.comparisons
        both_controls = one in self.controls and other in self.controls
        if {one, other} <= set(self.candidates) and not both_controls:
            return error * shares.bounds / self.deciding_pairs
        return error * shares.others / max(1, self.comparisons - self.deciding_pairs)

    @property
    def decision_factor(self) -> float:
        """A decision with log evidence e is wrong with probability at most this · exp(−e) of the whole error.

        Who is best: one test of the true best method. The order of k: the k − 1 neighbors in the true order. Both
        doubled, so that methods that are exactly equal are not separated either.
        """
        tests = 1 if self.until == "best" else max(1, len(self.candidates) - 1)
        return 2 * tests * self.blocks / self.shares.decision

    @property
    def tests(self) -> int:
        """As many tests that share the error equally would be as strict."""
        return math.ceil(self.decision_factor / 2) if self.methods else self.comparisons

    def taken(self, count: int) -> NDArray[np.int64]:
        """Where each image, in the order in which they were taken, stands among the `count` images in row order."""
        if self.seed is None:
            return np.arange(count)
        return np.argsort(np.argsort(order_of_taking(self.images, self.seed)[:count]))

    @staticmethod
    def read(values: Mapping[str, Any]) -> "StoppingRule":
        """From JSON, which has no tuples."""
        fields: dict[str, Any] = {n: tuple(value) if isinstance(value, list) else value for n, value in values.items()}
        return StoppingRule(**fields)


def order_of_taking(images: int, seed: int) -> NDArray[np.int64]:
    """The order in which early stopping takes images: a permutation, so a data set sorted by class is no trap."""
    return stream(stream_key(seed, ("until ranked",)), 0).permutation(images)


def undecided(table: pd.DataFrame) -> NDArray[np.bool_]:
    """The pairs that are neither clearly different nor tied within the margin.

    A pair of two controls never counts: nobody asks which control is the better one.
    """
    open_pairs = ~((table["low"] > 0) | table["tie"]).to_numpy(dtype=bool)
    return np.asarray(open_pairs & ~(table["control_a"] & table["control_b"]).to_numpy(dtype=bool))


def answered(pairs: pd.DataFrame, until: str) -> bool:
    """Whether the pairs of one block decide the question of the rule.

    "ranked": every pair with a user's method is decided. "best": so are the pairs of the best of the user's methods, or
    one method or control is clearly better than all others.
    """
    open_pairs = undecided(pairs)
    if until == "ranked":
        return not open_pairs.any()
    wins = pairs.loc[pairs["low"] > 0, "method_a"].value_counts()
    names = pd.unique(pairs[["method_a", "method_b"]].to_numpy().ravel())
    if len(wins) and wins.iloc[0] == len(names) - 1:
        return True
    best = _best_method(pairs)
    if best is None:  # only controls
        return True
    return not open_pairs[((pairs["method_a"] == best) | (pairs["method_b"] == best)).to_numpy()].any()


def _best_method(pairs: pd.DataFrame) -> str | None:
    """The best of the user's methods. A pair names the better method first, so the best one has lost to no other."""
    one, other = pairs[~pairs["control_a"]], pairs[~pairs["control_b"]]
    methods = pd.unique(pd.concat([one["method_a"], other["method_b"]]))
    lost = set(pairs.loc[~pairs["control_a"] & ~pairs["control_b"], "method_b"])
    return next((name for name in methods if name not in lost), None)
