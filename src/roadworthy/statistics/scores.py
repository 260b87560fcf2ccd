"""Maps: a curve in one number per image, so that a method's score is a mean over images (`PAPER` 5)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from roadworthy.core.errors import InputError, ShapeError
from roadworthy.statistics.curves import PointPredictions, Setting, Sheet, Value, by_fraction, sheets
from roadworthy.statistics.intervals import Array


class Score(NamedTuple):
    higher_is_better: bool
    bounds: tuple[float, float]
    """the least and the greatest value that an image can have"""

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
"""`srg` = area(LeRF) − area(MoRF), the combined score · `morf`, `lerf`: areas · `…_aopc`: mean loss above 0."""

_LEADS = ("srg", "morf", "lerf")


def area(curve: Array, fractions: Sequence[float]) -> Array:
    """Trapezoid over [0, f_max] ÷ f_max, of values `(fractions, ...)`. MoRF: lower is better; LeRF: higher.

    >>> float(area(np.array([1.0, 0.5, 0.0]), (0, 0.2, 0.4)))
    0.5
    """
    _check(curve, fractions)
    return np.asarray(np.trapezoid(curve, fractions, axis=0) / fractions[-1])


def aopc(curve: Array, fractions: Sequence[float]) -> Array:
    """Mean over fractions above 0 of (value at 0 − value there). MoRF: higher is better; LeRF: lower.

    >>> float(aopc(np.array([1.0, 0.5, 0.0]), (0, 0.2, 0.4)))
    0.75
    """
    _check(curve, fractions)
    return np.asarray((curve[0] - curve[1:]).mean(axis=0))


def _check(curve: Array, fractions: Sequence[float]) -> None:
    if len(fractions) < 2 or fractions[0] != 0:
        raise InputError(f"fractions {tuple(fractions)}: scores need the point 0 and at least one more")
    if len(curve) != len(fractions):
        raise ShapeError(f"a curve of {len(curve)} values does not fit {len(fractions)} fractions: one value for each")


@dataclass(frozen=True, eq=False)
class Block:
    """What is ranked together: one evaluator, one imputer, the same images."""

    evaluator: str
    imputer: str
    scores: Mapping[str, Mapping[str, Array]]
    """score to method to values `(seeds, images)`; a method without the needed curves is not there"""

    @property
    def lead(self) -> str:
        """The score that decides: the combined one where there are both orders."""
        return next(name for name in _LEADS if name in self.scores)

    @property
    def methods(self) -> list[str]:
        """All of them, also those that have no value of the leading score."""
        return list(dict.fromkeys(method for methods in self.scores.values() for method in methods))


def blocks(predictions: PointPredictions, value: Value = "accuracy") -> list[Block]:
    """Per evaluator and imputer, every score of every method, image by image."""
    found: dict[tuple[str, str], dict[str, Sheet]] = {}
    for setting, sheet in sheets(predictions, value).items():
        if setting.order not in ("morf", "lerf"):
            raise InputError(f"order {setting.order!r}: scores are defined for 'morf' and 'lerf'")
        found.setdefault((setting.evaluator, setting.imputer), {})[setting.order] = sheet
    return [Block(*name, _scores(Setting(name[0], "both", name[1]), orders)) for name, orders in found.items()]


def _scores(setting: Setting, orders: Mapping[str, Sheet]) -> dict[str, dict[str, Array]]:
    found: dict[str, dict[str, Array]] = {}
    for order, sheet in orders.items():
        curves = {method: by_fraction(setting.evaluator, values) for method, values in sheet.values.items()}
        found[order] = {method: area(curve, sheet.fractions) for method, curve in curves.items()}
        found[f"{order}_aopc"] = {method: aopc(curve, sheet.fractions) for method, curve in curves.items()}
    if both := [method for method in found.get("lerf", ()) if method in found.get("morf", ())]:
        _check_grids(setting, orders["morf"], orders["lerf"])
        found["srg"] = {method: found["lerf"][method] - found["morf"][method] for method in both}
    return {name: found[name] for name in SCORES if name in found}


def _check_grids(setting: Setting, morf: Sheet, lerf: Sheet) -> None:
    if (morf.fractions, morf.seeds) != (lerf.fractions, lerf.seeds):
        raise ShapeError(
            f"{setting}: MoRF has fractions {morf.fractions} and seeds {morf.seeds}, LeRF {lerf.fractions} and "
            f"{lerf.seeds}: the combined score needs the same points in both orders"
        )
