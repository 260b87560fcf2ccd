"""Tables formatted for people."""

from collections.abc import Mapping
from datetime import datetime

import numpy as np
import pandas as pd

from roadworthy.statistics import BlockKey, Standing, leading_score
from roadworthy.statistics.scores import table_blocks

_GAP = "–"


def day(moment: datetime) -> str:
    """
    >>> day(datetime(2022, 7, 3))
    '3 July 2022'
    """
    return f"{moment.day} {moment:%B %Y}"


def setting_title(imputer: object, evaluator: object = None, units: str = "pixels") -> str:
    """
    >>> setting_title("linear"), setting_title("linear", "retrain"), setting_title("linear", units="patches 16")
    ('Imputed with linear', 'Imputed with linear, evaluator retrain', 'Imputed with linear, units: patches 16')
    """
    removed = "" if units == "pixels" else f", units: {units}"
    how = "Removed tokens left out" if imputer == "token-removal" else f"Imputed with {imputer}"
    return how + (f", evaluator {evaluator}" if evaluator else "") + removed


def units_of(table: pd.DataFrame) -> str:
    """The units of a table of one comparison, which has one kind; pixels where it does not say."""
    return ", ".join(dict.fromkeys(table.get("units", ["pixels"])))


def fraction_removed(table: pd.DataFrame) -> str:
    """Of what a fraction is one, as the title of an axis.

    >>> fraction_removed(pd.DataFrame({"units": ["pixels"]})), fraction_removed(pd.DataFrame({"units": ["patches 16"]}))
    ('fraction of pixels removed', 'fraction of units removed (patches 16)')
    """
    units = units_of(table)
    return "fraction of pixels removed" if units == "pixels" else f"fraction of units removed ({units})"


def accuracy_text(table: pd.DataFrame, unlabeled: bool = False) -> str:
    """The table of `plain_accuracy` in words: one accuracy, or one per evaluator and imputer where they differ.

    >>> names = ["evaluator", "imputer", "model", "units", "accuracy", "low", "high"]
    >>> rows = [("no-retrain", imputer, "model", "pixels", 0.77, 0.75, 0.79) for imputer in ("linear", "fixed")]
    >>> accuracy_text(pd.DataFrame(rows, columns=names))
    '77.0 % [75.0 %, 79.0 %]'
    """
    if unlabeled:
        return "unknown: no image has a label, the model's own predictions stand in"
    fields = [name for name in ("evaluator", "imputer", "model", "units") if table[name].nunique() > 1]
    parts: list[str] = []
    for evaluator, rows in table.groupby("evaluator", sort=False):
        texts = [
            f"{share:.1%} [{max(0.0, low):.1%}, {high:.1%}]".replace("%", " %")
            for share, low, high in zip(rows["accuracy"], rows["low"], rows["high"], strict=True)
        ]
        if len(set(texts)) == 1:  # without retraining, for example, whatever the imputer
            parts.append(f"{evaluator} {texts[0]}" if "evaluator" in fields else texts[0])
        else:
            places = rows[fields].agg(" · ".join, axis=1)
            parts += [f"{place} {text}" for place, text in zip(places, texts, strict=True)]
    return "; ".join(parts)


def short_ranking(table: pd.DataFrame, standings: Mapping[BlockKey, Standing]) -> pd.DataFrame:
    """The ranking, narrow enough for a terminal: in each block the methods by their rank, then the controls.

    Ranks are among the methods. The leading score has its interval.
    """
    blocks = table_blocks(table)
    ranks = {
        row: _rank(*standings[key].rank(method)) if method in standings[key].methods else _GAP
        for key, block in blocks.items()
        for row, method in block["method"].items()
    }
    table = pd.concat([block.sort_values("control", kind="stable") for block in blocks.values()])
    lead = leading_score(table)
    titles = {"srg": "LeRF − MoRF", "morf": "MoRF ↓", "lerf": "LeRF ↑"}
    scores = [table[f"{lead}{end}"] for end in ("", "_low", "_high")]
    short = pd.DataFrame(
        {
            "rank": [ranks[row] for row in table.index],
            "method": table["method"] + np.where(table["control"], " (control)", ""),
            titles[lead]: [_score(*values) for values in zip(*scores, strict=True)],
        }
    )
    for score in (name for name in ("morf", "lerf") if name in table and name != lead):
        short[titles[score]] = [_GAP if np.isnan(value) else f"{value:.3f}" for value in table[score]]
    for name in ("imputer", "evaluator"):
        if table[name].nunique() > 1:
            short.insert(0, name, table[name])
    return short


def _rank(rank: int, low: int, high: int) -> str:
    return f"{rank}" if low == high else f"{rank} ({low}–{high})"


def _score(value: float, low: float, high: float) -> str:
    if np.isnan(value):
        return _GAP
    return f"{value:.3f}" if np.isnan(low) else f"{value:.3f} [{low:.3f}, {high:.3f}]"


def short_agreement(table: pd.DataFrame) -> pd.DataFrame:
    """The agreement of every two settings; settings name their evaluator where there are several."""
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
            "other setting": side("b"),
            "at equal fraction": table["pairing"],
            **{title: table[name].map(_signed) for name, title in measures.items()},
            "fractions": table["fractions"],
        }
    )


def _signed(value: float) -> str:
    return _GAP if np.isnan(value) else f"{value:+.2f}"
