"""The slope chart: ranks by MoRF on the left, by LeRF on the right, one panel per evaluator and imputer."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pandas as pd

from roadworthy.report.labels import shortened
from roadworthy.report.ranks import RankPanel, RankRow, rank_panels
from roadworthy.report.tables import setting_title

WIDTH, SIDE, TOP, ROW, BOTTOM = 420, 138, 14, 24, 34
MOST_LETTERS = 15


class Line(NamedTuple):
    number: int
    """of the method, on the whole page"""
    name: str
    short: str
    left: float
    right: float
    ranks: tuple[int, int]
    """by MoRF and by LeRF"""
    strong: bool


class Panel(NamedTuple):
    title: str
    agreement: Sequence[str]
    """of the two orders, per pairing of the fractions"""
    label: str
    height: float
    lines: Sequence[Line]


def slopes(
    ranking: pd.DataFrame,
    agreement: pd.DataFrame | None,
    numbers: Mapping[str, int],
    strong: Sequence[str],
    main: tuple[str, str],
) -> list[Panel]:
    """One panel per evaluator and imputer, that of the conclusion first. None where there are not two methods."""
    several = ranking["evaluator"].nunique() > 1
    found = rank_panels(ranking, pd.DataFrame() if agreement is None else agreement, main)
    ordered = sorted(found, key=lambda panel: (panel.evaluator, panel.imputer) != main)
    return [_panel(panel, several, numbers, strong) for panel in ordered]


def _panel(panel: RankPanel, several: bool, numbers: Mapping[str, int], strong: Sequence[str]) -> Panel:
    title = setting_title(panel.imputer, panel.evaluator if several else None)
    lines = [_line(row, numbers[row.method], row.method in strong) for row in panel.rows]
    same = sum(row.morf == row.lerf for row in panel.rows)
    return Panel(
        title,
        [f"{value} at equal fractions {pairing}" for pairing, value in panel.agreement.items()],
        f"{title}: ranks by MoRF and by LeRF; {same} of {len(lines)} methods have the same rank in both.",
        TOP + ROW * len(lines) + BOTTOM,
        # Emphasized lines are drawn last, above the others.
        sorted(lines, key=lambda line: line.strong),
    )


def _line(row: RankRow, number: int, strong: bool) -> Line:
    left, right = (TOP + ROW * (place - 0.5) for place in (row.morf_place, row.lerf_place))
    return Line(number, row.method, shortened(row.method, MOST_LETTERS), left, right, (row.morf, row.lerf), strong)
