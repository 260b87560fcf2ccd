"""The committed numbers, ours and the paper's, and small tables in Markdown."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path

import pandas as pd

HERE = Path(__file__).parent
METHODS = ("IG", "IG-SG", "IG-SQ", "IG-Var", "GB", "GB-SG", "GB-SQ", "GB-Var")
FILLS = ("fixed", "linear", "gain")
EVALUATORS = {"retrain": "retrain", "no-retrain": "no-retrain"}
ORDERS = {"morf": "MoRF", "lerf": "LeRF"}
GAP = "–"
Setting = tuple[str, str, str]
"""evaluator, order, imputer"""
SETTINGS: tuple[Setting, ...] = tuple(
    (evaluator, order, fill) for order in ORDERS for evaluator in EVALUATORS for fill in FILLS
)  # the order of the paper's table


@lru_cache
def ours(name: str) -> pd.DataFrame:
    return pd.read_csv(HERE / "results" / f"{name}.csv", keep_default_na=True)


@lru_cache
def paper(name: str) -> pd.DataFrame:
    return pd.read_csv(HERE / "paper" / f"{name}.csv")


def where(rows: pd.DataFrame, /, **wanted: object) -> pd.DataFrame:
    for column, value in wanted.items():
        rows = rows[rows[column] == value]
    return rows


def only(rows: pd.DataFrame, /, **wanted: object) -> pd.Series:
    """The one row that fits."""
    found = where(rows, **wanted)
    if len(found) != 1:
        raise LookupError(f"{len(found)} rows fit {wanted}")
    return found.iloc[0]


def pair_row(rows: pd.DataFrame, a: Setting, b: Setting, /, **wanted: object) -> pd.Series | None:
    """The row of two settings, whichever comes first in the table."""
    for first, second in ((a, b), (b, a)):
        names = {
            f"{field}_{side}": value
            for side, one in (("a", first), ("b", second))
            for field, value in zip(("evaluator", "order", "imputer"), one, strict=True)
        }
        found = where(rows, **names, **wanted)
        if len(found):
            return found.iloc[0]
    return None


def agreement(experiment: str, a: Setting, b: Setting, pairing: str = "removed") -> pd.Series | None:
    return pair_row(ours("agreement"), a, b, experiment=experiment, pairing="removed" if a[1] == b[1] else pairing)


def markdown(columns: Sequence[str], rows: Iterable[Sequence[object]], rest: str = "--:") -> str:
    """The first column to the left, numbers to the right; words to the left, with `rest="---"`."""
    lines = [" | ".join(columns), " | ".join(["---", *[rest] * (len(columns) - 1)])]
    lines += [" | ".join(str(cell) for cell in row) for row in rows]
    return "\n".join(f"| {line} |" for line in lines)


def number(value: float, digits: int = 2) -> str:
    """
    >>> number(0.5), number(-0.004), number(float("nan"))
    ('.50', '.00', '–')
    """
    if value != value:
        return GAP
    text = f"{value:.{digits}f}"
    text = text.removeprefix("-") if float(text) == 0 else text
    return text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text


def spread(row: pd.Series | None, value: str = "spearman", digits: int = 2) -> str:
    """A number with its interval."""
    if row is None or row[value] != row[value]:
        return GAP
    return f"{number(row[value], digits)} [{number(row['low'], digits)}, {number(row['high'], digits)}]"


def percent(value: float, digits: int = 1) -> str:
    return GAP if value != value else f"{100 * value:.{digits}f}"


def name_of(setting: Setting) -> str:
    evaluator, order, fill = setting
    return f"{EVALUATORS[evaluator]} {ORDERS[order]} {fill}"
