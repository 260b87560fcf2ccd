"""What an imputer changes: the methods' ranks by MoRF and by LeRF, and how far the two orders agree."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd

from roadworthy.statistics import leading_score, preferred_block

PAIRINGS = {"kept": "at LeRF kept = MoRF removed", "removed": "at equal fractions removed"}
"""the paper's first"""


class Agreement(NamedTuple):
    """Spearman correlation of the MoRF and the LeRF ranking, a mean over the fractions, with its interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        """
        >>> str(Agreement(-0.417, -0.7, 0.04)), str(Agreement(0.5, float("nan"), float("nan")))
        ('−0.42 [−0.70, +0.04]', '+0.50')
        """
        interval = "" if np.isnan(self.low) else f" [{signed(self.low)}, {signed(self.high)}]"
        return signed(self.value) + interval


class RankRow(NamedTuple):
    method: str
    morf: int
    """rank by the area under the MoRF curve: 1 is best, equal areas share it"""
    lerf: int
    morf_place: int
    """1 to k, each once: where to draw it"""
    lerf_place: int


class RankPanel(NamedTuple):
    """The methods, without controls, of one evaluator and imputer."""

    evaluator: str
    imputer: str
    rows: tuple[RankRow, ...]
    """by `morf_place`"""
    agreement: Mapping[str, Agreement]
    """by pairing, the paper's first; missing where nothing can be compared"""

    @property
    def words(self) -> str:
        """Whether the two orders agree, no more than the intervals of both pairings say; "" if that is not known."""
        found = list(self.agreement.values())
        for words, holds in (
            ("agree", [each.low > 0 for each in found]),
            ("disagree", [each.high < 0 for each in found]),
        ):
            if any(holds):
                return f"the two orders {words}{'' if all(holds) else ' by one of two pairings'}"
        return "agreement is not established" if found else ""


def rank_panels(
    ranking: pd.DataFrame, agreement: pd.DataFrame, preferred: tuple[str, str] | None = None
) -> list[RankPanel]:
    """One per evaluator and imputer with two methods in both orders; that of the conclusion last: before, after.

    `agreement`: the table of `agreement_intervals`, or of `agreement`, which has no intervals; it may be empty.
    """
    main = preferred_block(ranking, preferred)
    panels = [
        RankPanel(str(evaluator), str(imputer), rows, _agreement(agreement, str(evaluator), str(imputer)))
        for (evaluator, imputer), block in ranking.groupby(["evaluator", "imputer"], sort=False)
        if len(rows := _rows(block)) > 1
    ]
    return sorted(panels, key=lambda panel: (panel.evaluator == main[0], panel.imputer == main[1]))


def _rows(block: pd.DataFrame) -> tuple[RankRow, ...]:
    if not {"morf", "lerf"} <= set(block.columns):
        return ()
    methods = block[~block["control"] & block["morf"].notna() & block["lerf"].notna()]
    methods = methods.sort_values(f"{leading_score(block)}_rank", kind="stable")  # decides where areas are equal
    merits = {"morf": -methods["morf"].round(12), "lerf": methods["lerf"].round(12)}
    ranks = [merit.rank(ascending=False, method=how) for merit in merits.values() for how in ("min", "first")]
    rows = [
        RankRow(str(method), int(morf), int(lerf), int(morf_place), int(lerf_place))
        for method, morf, morf_place, lerf, lerf_place in zip(methods["method"], *ranks, strict=True)
    ]
    return tuple(sorted(rows, key=lambda row: row.morf_place))


def _agreement(table: pd.DataFrame, evaluator: str, imputer: str) -> dict[str, Agreement]:
    if table.empty:
        return {}
    same = [table[f"{field}_{side}"] == name for field, name in (("evaluator", evaluator), ("imputer", imputer))
            for side in "ab"]  # fmt: skip
    rows = table[np.logical_and.reduce(same) & (table["order_a"] != table["order_b"]) & table["spearman"].notna()]
    ends = [rows[name] if name in rows else pd.Series(np.nan, rows.index) for name in ("low", "high")]
    found = zip(rows["pairing"], rows["spearman"], *ends, strict=True)
    by_pairing = {pairing: Agreement(float(value), float(low), float(high)) for pairing, value, low, high in found}
    return {pairing: by_pairing[pairing] for pairing in PAIRINGS if pairing in by_pairing}


def signed(value: float) -> str:
    """
    >>> signed(-0.424), signed(0.3), signed(-0.001)
    ('−0.42', '+0.30', '0.00')
    """
    text = f"{value:+.2f}"
    return text[1:] if text[1:] == "0.00" else text.replace("-", "−")
