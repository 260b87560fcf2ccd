"""The slope chart: ranks by MoRF on the left, by LeRF on the right, one panel per evaluator and imputer."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pandas as pd

from roadworthy.report.html.scales import shortened
from roadworthy.report.tables import setting_title
from roadworthy.statistics.scores import table_blocks

WIDTH, SIDE, TOP, ROW, BOTTOM = 420, 138, 14, 24, 34
MOST_LETTERS = 15


class Line(NamedTuple):
    number: int
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
    """of the two orders, in words"""
    label: str
    height: float
    lines: Sequence[Line]


def order_ranks(block: pd.DataFrame) -> pd.DataFrame:
    """Of the methods of a block, without controls: `morf` and `lerf`, the rank by each area; 1 is best.

    Equal areas share a rank. Methods that lack an order are left out.
    """
    if not {"morf", "lerf"} <= set(block.columns):
        return pd.DataFrame(columns=["method", "morf", "lerf"])
    rows = block[~block["control"] & block["morf"].notna() & block["lerf"].notna()]
    ranks = {
        order: rows[order].round(12).rank(method="min", ascending=order == "morf").astype(int)
        for order in ("morf", "lerf")
    }
    return pd.DataFrame({"method": rows["method"], **ranks}).reset_index(drop=True)


def slopes(
    ranking: pd.DataFrame,
    agreement: pd.DataFrame | None,
    numbers: Mapping[str, int],
    strong: Sequence[str],
    main: tuple[str, str],
) -> list[Panel]:
    """One panel per evaluator and imputer, that of the conclusion first. None where there are not two methods."""
    several = ranking["evaluator"].nunique() > 1
    blocks = sorted(table_blocks(ranking).items(), key=lambda entry: (entry[0].evaluator, entry[0].imputer) != main)
    panels = []
    for key, block in blocks:
        ranks = order_ranks(block)
        if len(ranks) > 1:
            title = setting_title(key.imputer, key.evaluator if several else None)
            words = [] if agreement is None else order_agreement(agreement, key.evaluator, key.imputer)
            panels.append(_panel(title, words, ranks, numbers, strong))
    return panels


def order_agreement(agreement: pd.DataFrame, evaluator: str, imputer: str) -> list[str]:
    """How far MoRF and LeRF agree there, per pairing of the fractions, with the interval where it is known."""
    same = (agreement[["evaluator_a", "evaluator_b"]] == evaluator).all(axis=1)
    same &= (agreement[["imputer_a", "imputer_b"]] == imputer).all(axis=1)
    rows = agreement[same & (agreement["order_a"] != agreement["order_b"])]
    texts = []
    for row in rows.to_dict("records"):
        value, low, high = row["spearman"], row.get("low", float("nan")), row.get("high", float("nan"))
        where = f"at equal fractions {row['pairing']}"
        if pd.isna(value):
            texts.append(f"undefined {where}: there is nothing to rank")
            continue
        interval = "" if pd.isna(low) else f" [{low:+.2f}, {high:+.2f}]"
        texts.append(f"{value:+.2f}{interval}".replace("-", "−") + f" {where}")
    return texts


def _panel(
    title: str, agreement: Sequence[str], ranks: pd.DataFrame, numbers: Mapping[str, int], strong: Sequence[str]
) -> Panel:
    places = {order: ranks[order].rank(method="first").astype(int).tolist() for order in ("morf", "lerf")}
    lines = [
        Line(
            numbers[method],
            method,
            shortened(method, MOST_LETTERS),
            TOP + ROW * (left - 0.5),
            TOP + ROW * (right - 0.5),
            (morf, lerf),
            method in strong,
        )
        for method, morf, lerf, left, right in zip(
            ranks["method"], ranks["morf"].tolist(), ranks["lerf"].tolist(), places["morf"], places["lerf"], strict=True
        )
    ]
    same = sum(line.ranks[0] == line.ranks[1] for line in lines)
    label = f"{title}: ranks by MoRF and by LeRF; {same} of {len(lines)} methods have the same rank in both."
    # Emphasized lines are drawn last, above the others.
    ordered = sorted(lines, key=lambda line: line.strong)
    return Panel(title, agreement, label, TOP + ROW * len(lines) + BOTTOM, ordered)
