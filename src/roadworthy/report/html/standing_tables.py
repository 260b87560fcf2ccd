"""Tables about one setting: its methods, its controls, the copies of its methods, and methods against controls."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from roadworthy.core.results import Copy
from roadworthy.statistics import Standing
from roadworthy.statistics.standing import Difference

_GAP = "–"
_TITLES = {"srg": "LeRF − MoRF", "morf": "MoRF ↓", "lerf": "LeRF ↑"}
_COPIES = {
    "blurred": "smoother, with nothing added",
    "inverted": "most and least relevant exchanged",
}


class MethodRow(NamedTuple):
    rank: str
    name: str
    number: int
    """of the method, on the whole page"""
    scores: Sequence[str]


class CopyRow(NamedTuple):
    name: str
    number: int
    score: str
    original: str
    original_score: str
    conclusion: str
    how: str


class ControlRow(NamedTuple):
    name: str
    number: int
    score: str


class Cell(NamedTuple):
    text: str
    tone: str
    """good, bad, open, or "" where nothing was compared"""


class Matrix(NamedTuple):
    """Methods against something."""

    columns: Sequence[str]
    rows: Sequence[tuple[str, Sequence[Cell]]]


class Tables(NamedTuple):
    title: str
    standing: Standing
    columns: Sequence[str]
    methods: Sequence[MethodRow]
    unranked: Sequence[str]
    controls: Sequence[ControlRow]
    copies: Sequence[CopyRow]
    matrix: Matrix | None

    @property
    def beating(self) -> int:
        """How many methods are clearly better than every blind control."""
        return sum(not self.standing.unbeaten_controls(row.name) for row in self.methods)


def tables(
    title: str, block: pd.DataFrame, standing: Standing, numbers: Mapping[str, int], copies: Mapping[str, Copy]
) -> Tables:
    """`block`: the rows of the ranking, in which methods without a rank are too."""
    ranked = {*standing.methods, *standing.controls, *standing.copies}
    others = [name for name in ("morf", "lerf") if name in block and name != standing.score]
    rows = standing.rows
    methods = [
        MethodRow(
            _rank(*standing.rank(name)),
            name,
            numbers[name],
            [_interval(rows, standing.score, name), *(_number(rows[score][name]) for score in others)],
        )
        for name in standing.methods
    ]
    controls = [ControlRow(name, numbers[name], _interval(rows, standing.score, name)) for name in standing.controls]
    return Tables(
        title,
        standing,
        [_TITLES[standing.score], *(_TITLES[name] for name in others)],
        methods,
        [name for name in block["method"] if name not in ranked],
        controls,
        [_copy(standing, name, numbers[name], copies[name]) for name in standing.copies if name in copies],
        _matrix(standing),
    )


def _rank(rank: int, low: int, high: int) -> str:
    return f"{rank}" if low == high else f"{rank} ({low}–{high})"


def _number(value: float) -> str:
    return _GAP if np.isnan(value) else f"{round(value, 3) + 0.0:.3f}".replace("-", "−")


def _interval(rows: pd.DataFrame, score: str, name: str) -> str:
    value, low, high = (_number(float(rows[score + end][name])) for end in ("", "_low", "_high"))
    return value if low == _GAP else f"{value} [{low}, {high}]"


def _signed(value: float) -> str:
    return f"{round(value, 3) + 0.0:+.3f}".replace("-", "−")


def _difference(difference: Difference) -> str:
    value = _signed(difference.value)
    return value if np.isnan(difference.low) else f"{value} [{_signed(difference.low)}, {_signed(difference.high)}]"


def _copy(standing: Standing, name: str, number: int, copy: Copy) -> CopyRow:
    rows, score = standing.rows, standing.score
    ranked = copy.of in rows.index
    conclusion = "its method is not ranked"
    if ranked:
        difference = standing.difference(name, copy.of)
        words = "clearly worse" if difference.high < 0 else "not clearly different"
        words = "clearly better" if difference.clear else words
        conclusion = f"{words}: {_difference(difference)}"
    return CopyRow(
        name,
        number,
        _interval(rows, score, name),
        copy.of,
        _interval(rows, score, copy.of) if ranked else _GAP,
        conclusion,
        _COPIES.get(copy.how, copy.how),
    )


def _matrix(standing: Standing) -> Matrix | None:
    """Every method against every blind control."""
    if not standing.controls or not standing.methods:
        return None
    rows = [
        (method, [_against(standing.difference(method, control)) for control in standing.controls])
        for method in standing.methods
    ]
    return Matrix(list(standing.controls), rows)


def _against(difference: Difference) -> Cell:
    if difference.clear:
        return Cell(f"✓ {_signed(difference.value)}", "good")
    if difference.high < 0:
        return Cell(f"✗ {_signed(difference.value)}", "bad")
    return Cell(f"? {_signed(difference.value)}", "open")
