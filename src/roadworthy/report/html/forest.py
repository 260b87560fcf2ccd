"""The forest plot: every method's score with its interval, and the blind controls as reference lines."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from roadworthy.report.html.scales import Axis, Tick, levels
from roadworthy.report.labels import shortened
from roadworthy.statistics import SCORES, Standing

WIDTH, LEFT, RIGHT = 560, 132, 54
ROW, BOTTOM, LABEL = 25, 46, 15
MOST_LETTERS = 15

SCORE_TITLES = {
    "srg": "ROAD score: LeRF area − MoRF area, higher is better",
    "morf": "area under MoRF, lower is better",
    "lerf": "area under LeRF, higher is better",
}


class Row(NamedTuple):
    rank: int
    name: str
    short: str
    number: int
    """of the method, on the whole page"""
    y: float
    x: float
    ends: tuple[float, float] | None
    """of the interval; a single image has none"""
    value: str
    text: str
    clear: bool
    """clearly better than every blind control"""


class Reference(NamedTuple):
    name: str
    x: float
    y: float
    """of its label"""


class Forest(NamedTuple):
    label: str
    """for screen readers"""
    title: str
    """of the axis"""
    height: float
    top: float
    rows: list[Row]
    references: list[Reference]
    blind: tuple[float, float] | None
    """from, to: scores that a blind control reaches too"""
    ticks: list[Tick]
    left_out: int


def forest(standing: Standing, numbers: Mapping[str, int], most: int | None = None) -> Forest:
    """The methods best first, the first `most` of them; at least one method."""
    methods = standing.methods[:most]
    marks = {name: float(standing.rows[standing.score][name]) for name in standing.controls}
    shown = standing.rows.loc[list(methods), [standing.score + end for end in ("", "_low", "_high")]].to_numpy()
    start, end = np.nanmin([*shown.ravel(), *marks.values()]), np.nanmax([*shown.ravel(), *marks.values()])
    room = 0.04 * ((end - start) or 1.0)
    axis = Axis(start - room, end + room, LEFT, WIDTH - RIGHT)
    ordered = sorted(marks, key=marks.__getitem__)
    heights = levels([axis.at(marks[name]) for name in ordered], ordered)
    top = 6 + LABEL * (1 + max(heights, default=-1))
    bottom = top + ROW * len(methods)
    return Forest(
        _label(standing),
        SCORE_TITLES[standing.score],
        bottom + BOTTOM,
        top,
        [_row(standing, name, numbers[name], axis, top + ROW * (k + 0.5)) for k, name in enumerate(methods)],
        [
            Reference(name, axis.at(marks[name]), top - 6 - LABEL * level)
            for name, level in zip(ordered, heights, strict=True)
        ],
        _blind(standing, [axis.at(value) for value in marks.values()]),
        axis.ticks(),
        len(standing.methods) - len(methods),
    )  # fmt: skip


def _row(standing: Standing, name: str, number: int, axis: Axis, y: float) -> Row:
    score, low, high = (float(standing.rows[standing.score + end][name]) for end in ("", "_low", "_high"))
    known = not np.isnan(low)
    text = f"{name}: {score:.3f}{f' [{low:.3f}, {high:.3f}]' if known else ''}".replace("-", "−")
    return Row(
        standing.rank(name)[0],
        name,
        shortened(name, MOST_LETTERS),
        number,
        y,
        axis.at(score),
        (axis.at(low), axis.at(high)) if known else None,
        f"{round(score, 2) + 0.0:.2f}".replace("-", "−"),
        text,
        bool(standing.controls) and not standing.unbeaten_controls(name),
    )


def _blind(standing: Standing, marks: list[float]) -> tuple[float, float] | None:
    if not marks:
        return None
    higher = SCORES[standing.score].higher_is_better
    return (LEFT, max(marks)) if higher else (min(marks), WIDTH - RIGHT)


def _label(standing: Standing) -> str:
    best, worst = standing.methods[0], standing.methods[-1]
    number = len(standing.methods)
    text = f"Scores of {number} method{'s' if number > 1 else ''} with intervals, best on top: {best}"
    return f"{text} to {worst}." if number > 1 else f"{text}."
