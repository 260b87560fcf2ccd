"""The committed numbers, ours and the paper's, and small tables in Markdown."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path

import pandas as pd

HERE = Path(__file__).parent
PLANS = HERE.parent / "plans"
EXPERIMENTS = {
    "cifar10": ("cifar10-cpu", "cifar10-cpu-retrain"),
    "cifar10-resnet18": ("cifar10-cpu-resnet18",),
    "food101": ("food101-cpu", "food101-cpu-retrain"),
}
"""experiment to its plans, which share the test images and the explained model"""
AGAIN = {"food101": "food101-again"}
"""experiment whose predictions per image were not kept to the same plan, its network trained again and no retraining"""
TITLES = {
    "cifar10": "CIFAR-10, ResNet-20",
    "cifar10-resnet18": "CIFAR-10, ResNet-18",
    "food101": "Food-101, ResNet-18",
}
AUDITED = {
    "cifar10": ("masks", "detection", "geometry"),
    "cifar10-resnet18": ("geometry",),
    "food101": ("geometry",),
}
"""experiment to the questions of the audit of its first plan"""
SHARES = (0.3, 0.5, 0.7)
"""fractions of the audit: those at which models were retrained"""
METHODS = ("IG", "IG-SG", "IG-SQ", "IG-Var", "GB", "GB-SG", "GB-SQ", "GB-Var")
IMPUTERS = ("fixed", "linear", "gain")
EVALUATORS = ("retrain", "no-retrain")
ORDERS = {"morf": "MoRF", "lerf": "LeRF"}
GAP = "–"
Setting = tuple[str, str, str]
"""evaluator, order, imputer"""
SETTINGS: tuple[Setting, ...] = tuple(
    (evaluator, order, imputer) for order in ORDERS for evaluator in EVALUATORS for imputer in IMPUTERS
)  # in the order of the paper's table


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
    """The single row with these values."""
    matches = where(rows, **wanted)
    if len(matches) != 1:
        raise LookupError(f"{len(matches)} rows have {wanted}")
    return matches.iloc[0]


def pair_row(rows: pd.DataFrame, a: Setting, b: Setting, /, **wanted: object) -> pd.Series | None:
    """The row of two settings, whichever comes first in the table."""
    for first, second in ((a, b), (b, a)):
        names = {
            f"{field}_{side}": value
            for side, setting in (("a", first), ("b", second))
            for field, value in zip(("evaluator", "order", "imputer"), setting, strict=True)
        }
        matches = where(rows, **names, **wanted)
        if len(matches):
            return matches.iloc[0]
    return None


def agreement(experiment: str, a: Setting, b: Setting, pairing: str = "removed") -> pd.Series | None:
    return pair_row(ours("agreement"), a, b, experiment=experiment, pairing="removed" if a[1] == b[1] else pairing)


def whole_accuracy(experiment: str, evaluator: str = "no-retrain") -> float:
    """On images from which nothing was removed."""
    rows = where(ours("points"), experiment=experiment, evaluator=evaluator, fraction=0.0)
    return float(rows["accuracy"].iloc[0])


def markdown(columns: Sequence[str], rows: Iterable[Sequence[object]], rest: str = "--:") -> str:
    """A table with its first column aligned left and the others right, or left with `rest="---"`."""
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
    """A value with its interval, if it has one."""
    if row is None or row[value] != row[value]:
        return GAP
    if row["low"] != row["low"]:
        return number(row[value], digits)
    return f"{number(row[value], digits)} [{number(row['low'], digits)}, {number(row['high'], digits)}]"


def percent(value: float, digits: int = 1) -> str:
    return GAP if value != value else f"{100 * value:.{digits}f}"


def name_of(setting: Setting) -> str:
    evaluator, order, imputer = setting
    return f"{evaluator} {ORDERS[order]} {imputer}"
