"""What the tables establish about a block: a clear winner, a tie, methods no better than the controls, or nothing yet.

Everything rests on the intervals of `pairwise`, which hold simultaneously for all pairs of a block. "Clearly better"
means that the interval of the difference lies above 0.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Literal, NamedTuple

import pandas as pd

from roadworthy.statistics.scores import BlockKey, leading_score, table_blocks

State = Literal["NO METHOD BEATS THE CONTROLS", "CLEAR WINNER", "TIE", "NOT YET"]
NO_METHOD: State = "NO METHOD BEATS THE CONTROLS"
CLEAR_WINNER: State = "CLEAR WINNER"
TIE: State = "TIE"
NOT_YET: State = "NOT YET"


class Difference(NamedTuple):
    """By how much one method is better than another; negative where it is worse."""

    value: float
    low: float
    high: float
    tie: bool
    """the interval lies within the margin"""
    share: float
    """of resamples in which it is better; NaN after early stopping"""
    images_needed: float

    @property
    def clear(self) -> bool:
        return self.low > 0

    @property
    def reversed(self) -> "Difference":
        return Difference(-self.value, -self.high, -self.low, self.tie, 1 - self.share, self.images_needed)

    @property
    def most(self) -> float:
        """How far apart the two can be."""
        return max(-self.low, self.high)


@dataclass(frozen=True, eq=False)
class Standing:
    """The methods and controls of one block, best first, and the differences between them."""

    key: BlockKey
    score: str
    """the leading one"""
    rows: pd.DataFrame
    """of the ranking, by method"""
    methods: tuple[str, ...]
    """the user's"""
    controls: tuple[str, ...]
    """the blind ones: they do not use the model"""
    copies: tuple[str, ...]
    """controls made from a method's maps: they say something about the benchmark, not about a method"""
    differences: Mapping[tuple[str, str], Difference]
    margin: float

    @property
    def images(self) -> int:
        return int(self.rows["images"].iloc[0])

    @property
    def best(self) -> str:
        return self.methods[0]

    @property
    def leaders(self) -> tuple[str, ...]:
        """The best method and those that it does not clearly beat."""
        return tuple(name for name in self.methods if name == self.best or not self.clear(self.best, name))

    def difference(self, one: str, other: str) -> Difference:
        pair = self.differences.get((one, other))
        return pair if pair is not None else self.differences[other, one].reversed

    def clear(self, one: str, other: str) -> bool:
        """One is clearly better than the other."""
        return self.difference(one, other).clear

    def unbeaten_controls(self, method: str) -> tuple[str, ...]:
        return tuple(control for control in self.controls if not self.clear(method, control))

    def refuting_controls(self, method: str) -> tuple[str, ...]:
        """Controls over which the method surely gains less than the margin, and which it does not clearly beat."""
        return tuple(
            control for control in self.unbeaten_controls(method) if self.difference(method, control).high < self.margin
        )

    def rank(self, method: str) -> tuple[int, int, int]:
        """Among the methods, without controls: its rank, and the lowest and highest that the differences allow."""
        others = [name for name in self.methods if name != method]
        better = [name for name in others if self.difference(name, method).value > 1e-12]
        low = 1 + sum(self.clear(name, method) for name in others)
        return 1 + len(better), low, len(self.methods) - sum(self.clear(method, name) for name in others)

    @property
    def state(self) -> State:
        if len(self.methods) + len(self.controls) < 2 or not self.methods:
            return NOT_YET
        others = (*self.methods[1:], *self.controls)
        if all(self.clear(self.best, other) for other in others):
            return CLEAR_WINNER
        leaders = self.leaders
        ahead = not any(self.unbeaten_controls(leader) for leader in leaders)
        if ahead and all(self.difference(*pair).tie for pair in combinations(leaders, 2)):
            return TIE
        if all(self.refuting_controls(method) for method in self.methods):
            return NO_METHOD
        return NOT_YET


def standings(
    ranking: pd.DataFrame, pairwise: pd.DataFrame, copies: Collection[str], margin: float
) -> dict[BlockKey, Standing]:
    """One per block, from the tables of the same predictions; `pairwise` may be empty.

    `copies`: the controls that are made from a method's maps. `margin`: that of the table `pairwise`.
    """
    pairs = table_blocks(pairwise)
    return {key: _standing(key, block, pairs.get(key), copies, margin) for key, block in table_blocks(ranking).items()}


def _standing(
    key: BlockKey, block: pd.DataFrame, pairs: pd.DataFrame | None, copies: Collection[str], margin: float
) -> Standing:
    score = leading_score(block)
    rows = block[block[score].notna()].set_index("method")
    controls = rows.index[rows["control"]].tolist()
    return Standing(
        key,
        score,
        rows,
        tuple(rows.index[~rows["control"]]),
        tuple(name for name in controls if name not in copies),
        tuple(name for name in controls if name in copies),
        {} if pairs is None else _differences(pairs),
        margin,
    )


def _differences(pairs: pd.DataFrame) -> dict[tuple[str, str], Difference]:
    columns = ("method_a", "method_b", "difference", "low", "high", "tie", "probability", "images_needed")
    rows = zip(*(pairs[name].tolist() for name in columns), strict=True)
    return {(one, other): Difference(*values) for one, other, *values in rows}
