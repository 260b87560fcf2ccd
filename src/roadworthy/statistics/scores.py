"""Scores: each curve as one number per image, so that a method's score is a mean over images."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from roadworthy.core.errors import InputError, ShapeError
from roadworthy.core.results import Point
from roadworthy.statistics.curves import CurveSet, PointPredictions, Setting, Value, by_fraction, curve_sets
from roadworthy.statistics.intervals import Array


class Score(NamedTuple):
    """How the values of a score are read."""

    higher_is_better: bool
    bounds: tuple[float, float]
    """smallest and largest value that an image can have"""

    @property
    def sign(self) -> int:
        """Times this, higher is better."""
        return 1 if self.higher_is_better else -1

    @property
    def direction(self) -> str:
        return "higher is better" if self.higher_is_better else "lower is better"


SCORES: Mapping[str, Score] = {
    "srg": Score(True, (-1.0, 1.0)),
    "morf": Score(False, (0.0, 1.0)),
    "lerf": Score(True, (0.0, 1.0)),
    "morf_aopc": Score(True, (-1.0, 1.0)),
    "lerf_aopc": Score(False, (-1.0, 1.0)),
}
"""`srg`: symmetric relevance gain = LeRF area − MoRF area, the combined score (SRG of Blücher et al. 2024,
arXiv:2401.06654) · `morf`, `lerf`: areas · `morf_aopc`, `lerf_aopc`: mean loss over the fractions above 0."""

LEADING_SCORES = ("srg", "morf", "lerf")
"""the scores that may decide a ranking, in order of preference"""


def area(curve: Array, fractions: Sequence[float]) -> Array:
    """Trapezoidal area over [0, f_max] ÷ f_max, of values `(fractions, ...)`. MoRF: lower is better; LeRF: higher.

    >>> float(area(np.array([1.0, 0.5, 0.0]), (0, 0.2, 0.4)))
    0.5
    """
    _check(curve, fractions)
    return np.asarray(np.trapezoid(curve, fractions, axis=0) / fractions[-1])


def aopc(curve: Array, fractions: Sequence[float]) -> Array:
    """Mean over the fractions above 0 of (value at 0 − value at the fraction). MoRF: higher is better; LeRF: lower.

    >>> float(aopc(np.array([1.0, 0.5, 0.0]), (0, 0.2, 0.4)))
    0.75
    """
    _check(curve, fractions)
    return np.asarray((curve[0] - curve[1:]).mean(axis=0))


def _check(curve: Array, fractions: Sequence[float]) -> None:
    if len(fractions) < 2 or fractions[0] != 0:
        raise InputError(f"fractions {tuple(fractions)}: scores need fraction 0 and at least one more")
    if len(curve) != len(fractions):
        raise ShapeError(f"a curve of {len(curve)} values does not fit {len(fractions)} fractions: give one value each")


class BlockKey(NamedTuple):
    """Identifies a block; the names are columns of the tables."""

    evaluator: str
    imputer: str
    model: str = Point._field_defaults["model"]
    units: str = Point._field_defaults["units"]


@dataclass(frozen=True, eq=False)
class Block:
    """What is ranked together: the methods of one evaluator, imputer, model and units, on the same images."""

    key: BlockKey
    scores: Mapping[str, Mapping[str, Array]]
    """score to method to values `(seeds, images)`; methods without the required curves are absent"""

    @property
    def leading_score(self) -> str:
        """The score that decides the ranking: the combined one where both orders were evaluated."""
        return next(name for name in LEADING_SCORES if name in self.scores)

    @property
    def methods(self) -> list[str]:
        """All methods, including those without a leading score."""
        return list(dict.fromkeys(method for methods in self.scores.values() for method in methods))


def blocks(predictions: PointPredictions, value: Value = "accuracy") -> list[Block]:
    """Every score of every method, image by image, in blocks."""
    orders: dict[Setting, dict[str, CurveSet]] = {}
    for setting, curve_set in curve_sets(predictions, value).items():
        if setting.order not in ("morf", "lerf"):
            raise InputError(f"order {setting.order!r}: scores are defined for 'morf' and 'lerf'")
        orders.setdefault(setting._replace(order="both"), {})[setting.order] = curve_set
    return [
        Block(BlockKey(both.evaluator, both.imputer, both.model, both.units), _scores(both, by_order))
        for both, by_order in orders.items()
    ]


def _scores(setting: Setting, orders: Mapping[str, CurveSet]) -> dict[str, dict[str, Array]]:
    scores: dict[str, dict[str, Array]] = {}
    for order, curve_set in orders.items():
        curves = {method: by_fraction(setting.evaluator, values) for method, values in curve_set.values.items()}
        scores[order] = {method: area(curve, curve_set.fractions) for method, curve in curves.items()}
        scores[f"{order}_aopc"] = {method: aopc(curve, curve_set.fractions) for method, curve in curves.items()}
    if both := [method for method in scores.get("lerf", ()) if method in scores.get("morf", ())]:
        _check_grids(setting, orders["morf"], orders["lerf"])
        scores["srg"] = {method: scores["lerf"][method] - scores["morf"][method] for method in both}
    return {name: scores[name] for name in SCORES if name in scores}


def _check_grids(setting: Setting, morf: CurveSet, lerf: CurveSet) -> None:
    if (morf.fractions, morf.seeds) != (lerf.fractions, lerf.seeds):
        raise ShapeError(
            f"{setting}: MoRF has fractions {morf.fractions} and seeds {morf.seeds}, LeRF {lerf.fractions} and "
            f"{lerf.seeds}: the combined score needs the same fractions and seeds in both orders"
        )


def table_blocks(table: pd.DataFrame) -> dict[BlockKey, pd.DataFrame]:
    """The rows of each block of a ranking or pairwise table, in the order of the table."""
    groups = table.groupby(list(BlockKey._fields), sort=False)
    return {BlockKey(*map(str, key)): rows for key, rows in groups}


def preferred_block(ranking: pd.DataFrame, preferred: tuple[str, str] | None = None) -> tuple[str, str]:
    """The (evaluator, imputer) to show first: `preferred` if the ranking has it, otherwise the first of the ranking."""
    evaluated = list(dict.fromkeys(zip(ranking["evaluator"], ranking["imputer"], strict=True)))
    return preferred if preferred in evaluated else evaluated[0]


def leading_score(ranking: pd.DataFrame) -> str:
    """The score that decides a ranking."""
    return next(name for name in LEADING_SCORES if name in ranking and ranking[name].notna().any())
