"""Tables as people read them."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from roadworthy.statistics import main_block

_GAP = "–"


def day(moment: datetime) -> str:
    """
    >>> day(datetime(2022, 7, 3))
    '3 July 2022'
    """
    return f"{moment.day} {moment:%B %Y}"


def short_ranking(table: pd.DataFrame, audit: pd.DataFrame | None = None) -> pd.DataFrame:
    """The ranking as people read it, narrow enough for a terminal: the leading score with its interval and rank.

    With the predictions of an `audit`, each row says the worse of its orders' predictions.
    """
    lead = next(name for name in ("srg", "morf", "lerf") if name in table and table[name].notna().any())
    titles = {"srg": "LeRF − MoRF", "morf": "MoRF ↓", "lerf": "LeRF ↑"}
    bounds = [table[f"{lead}{end}"] for end in ("", "_low", "_high")]
    ranks = [table[f"{lead}_rank{end}"] for end in ("", "_low", "_high")]
    short = pd.DataFrame(
        {
            "rank": [_rank(*one) for one in zip(*ranks, strict=True)],
            "method": table["method"] + np.where(table["control"], " (control)", ""),
            titles[lead]: [_score(*one) for one in zip(*bounds, strict=True)],
        }
    )
    for score in (name for name in ("morf", "lerf") if name in table and name != lead):
        short[titles[score]] = [_GAP if np.isnan(value) else f"{value:.3f}" for value in table[score]]
    if audit is not None:
        rows = zip(table["method"], table["imputer"], strict=True)
        short["holes"] = [_leak_of(method, _leaks(audit, imputer))[0] or _GAP for method, imputer in rows]
    if table["imputer"].nunique() > 1:
        short.insert(0, "filled by", table["imputer"])
    return short


def _rank(rank: Any, low: Any, high: Any) -> str:
    if pd.isna(rank):
        return _GAP
    return f"{rank}" if low == high else f"{rank} ({low}–{high})"


def _score(value: float, low: float, high: float) -> str:
    return _GAP if np.isnan(value) else f"{value:.3f} [{low:.3f}, {high:.3f}]"


def short_agreement(table: pd.DataFrame) -> pd.DataFrame:
    """The agreement of settings, a name per setting; the evaluator is named where there are several."""
    evaluators = {*table["evaluator_a"], *table["evaluator_b"]}
    fields = ("order", "imputer", "evaluator") if len(evaluators) > 1 else ("order", "imputer")

    def side(end: str) -> pd.Series:
        return table[[f"{field}_{end}" for field in fields]].agg(" · ".join, axis=1)

    measures = {"spearman": "Spearman", "kendall": "Kendall", "alpha": "Krippendorff's alpha"}
    if (table["runs"] > 1).any():
        measures |= {"spearman_runs": "Spearman per run", "spearman_runs_error": "± standard error"}
    return pd.DataFrame(
        {
            "setting": side("a"),
            "and": side("b"),
            "compared at equal share": table["pairing"],
            **{title: table[name].map(_signed) for name, title in measures.items()},
            "fractions": table["fractions"],
        }
    )


def _signed(value: float) -> str:
    return _GAP if np.isnan(value) else f"{value:+.2f}"


class Place(NamedTuple):
    """A row of the ranking on the page."""

    rank: str
    method: str
    number: int
    control: bool
    scores: Sequence[str]
    mark: tuple[float, float, float] | None
    """score and interval of the leading score, as shares of the block's width"""
    groups: str
    leaks: str
    why: str


class Standing(NamedTuple):
    """The ranking in one setting."""

    title: str
    columns: Sequence[str]
    zero: float | None
    """where 0 lies, as a share of the width"""
    places: Sequence[Place]


def standings(ranking: pd.DataFrame, numbers: Mapping[str, int], leakage: pd.DataFrame | None) -> list[Standing]:
    """One per evaluator and imputer, that of the prediction first; `leakage` is the audit's table of predictions."""
    places = list(dict.fromkeys(zip(ranking["evaluator"], ranking["imputer"], strict=True)))
    blocks = {place: ranking[(ranking["evaluator"] == place[0]) & (ranking["imputer"] == place[1])] for place in places}
    main = main_block(ranking)
    return [
        _standing(
            blocks[evaluator, imputer],
            f"Filled by {imputer}, evaluated by {evaluator}",
            numbers,
            _leaks(leakage, imputer),
        )
        for evaluator, imputer in sorted(blocks, key=lambda place: place != main)
    ]


def _standing(
    block: pd.DataFrame, title: str, numbers: Mapping[str, int], leaks: Mapping[str, tuple[str, str]]
) -> Standing:
    short = short_ranking(block)
    lead = next(name for name in ("srg", "morf", "lerf") if name in block and block[name].notna().any())
    low, high = float(block[f"{lead}_low"].min()), float(block[f"{lead}_high"].max())
    width = (high - low) or 1.0
    ends = ((block[[lead, f"{lead}_low", f"{lead}_high"]] - low) / width).to_numpy().tolist()
    columns = [name for name in short.columns if name not in ("rank", "method", "filled by")]
    places = [
        Place(
            rank, method, numbers[method], control, scores, None if np.isnan(mark[0]) else tuple(mark), groups,
            *_leak_of(method, leaks),
        )
        for rank, method, control, scores, mark, groups in zip(
            short["rank"], block["method"], block["control"], short[columns].to_numpy().tolist(), ends, block["groups"],
            strict=True,
        )
    ]  # fmt: skip
    return Standing(title, columns, -low / width if low < 0 < high else None, places)


_WORST = ("leak-free", "leaks a little", "leaks")


def _leaks(table: pd.DataFrame | None, imputer: str) -> dict[str, tuple[str, str]]:
    """Method to the worst prediction over its orders, and why."""
    found: dict[str, tuple[str, str]] = {}
    if table is None:
        return found
    here = table[table["imputer"] == imputer]
    for method, conclusion, why in zip(here["method"], here["conclusion"], here["why"], strict=True):
        if method not in found or _WORST.index(conclusion) > _WORST.index(found[method][0]):
            found[method] = (conclusion, why)
    return found


def _leak_of(method: str, leaks: Mapping[str, tuple[str, str]]) -> tuple[str, str]:
    """An inverted copy has its method's masks, the orders exchanged, and so its worst prediction."""
    return leaks.get(method) or leaks.get(method.removesuffix(" inverted"), ("", ""))
