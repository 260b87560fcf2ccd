"""The committed numbers, ours and the paper's, and small tables in Markdown."""

import json
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

HERE = Path(__file__).parent
PLANS = HERE.parent / "plans"
RESULTS = HERE / "results"
METHODS = ("IG", "IG-SG", "IG-SQ", "IG-Var", "GB", "GB-SG", "GB-SQ", "GB-Var")
IMPUTERS = ("fixed", "linear", "gain")
EVALUATORS = ("retrain", "no-retrain")
"""the paper's"""
ORDERS = {"morf": "MoRF", "lerf": "LeRF"}
TITLES = {"cifar10": "CIFAR-10", "food101": "Food-101"}
GAP = "–"
NOT_RUN = "not run yet"
POINT = ["method", "order", "imputer", "evaluator", "fraction", "seed"]
"""columns of a point; model and units have one value"""
Setting = tuple[str, str, str]
"""evaluator, order, imputer"""
SETTINGS: tuple[Setting, ...] = tuple(
    (evaluator, order, imputer) for order in ORDERS for evaluator in EVALUATORS for imputer in IMPUTERS
)  # in the order of the paper's table


class Results(NamedTuple):
    """A folder of tables: those that are committed, or those of a smaller reproduction."""

    folder: Path = RESULTS

    def has(self, name: str) -> bool:
        return (self.folder / f"{name}.csv").exists()

    def table(self, name: str) -> pd.DataFrame:
        """Empty and without columns if it was not computed yet."""
        path = self.folder / f"{name}.csv"
        return _read(path, path.stat().st_mtime_ns) if path.exists() else pd.DataFrame()

    def facts(self) -> dict[str, dict[str, Any]]:
        path = self.folder / "facts.json"
        facts: dict[str, dict[str, Any]] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        return facts

    def points(self, *plans: str) -> pd.DataFrame:
        table = self.table("points")
        return (
            table[table["plan"].isin(plans)]
            if len(table)
            else pd.DataFrame(columns=["plan", "item", *POINT, "accuracy"])
        )

    def write(self, name: str, table: pd.DataFrame) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        text = table.to_csv(index=False, float_format="%.6g", lineterminator="\n")
        (self.folder / f"{name}.csv").write_text(text, encoding="utf-8")


@lru_cache(maxsize=64)
def _read(path: Path, changed: int) -> pd.DataFrame:
    return pd.read_csv(path)


@lru_cache
def paper(name: str) -> pd.DataFrame:
    return pd.read_csv(HERE / "paper" / f"{name}.csv")


def where(rows: pd.DataFrame, /, **wanted: object) -> pd.DataFrame:
    """The rows with these values; a table that was not computed yet has none."""
    for column, value in wanted.items():
        rows = rows[rows[column] == value] if column in rows else rows[:0]
    return rows


def only(rows: pd.DataFrame, /, **wanted: object) -> pd.Series:
    """The single row with these values."""
    matches = where(rows, **wanted)
    if len(matches) != 1:
        raise LookupError(f"{len(matches)} rows have {wanted}")
    return matches.iloc[0]


def pair_rows(rows: pd.DataFrame, a: Setting, b: Setting, /, **wanted: object) -> pd.DataFrame:
    """The rows of two settings, whichever comes first in the table."""
    for first, second in ((a, b), (b, a)):
        names = {
            f"{field}_{side}": value
            for side, setting in (("a", first), ("b", second))
            for field, value in zip(("evaluator", "order", "imputer"), setting, strict=True)
        }
        matches = where(rows, **names, **wanted)
        if len(matches):
            return matches
    return rows[:0]


def in_paper(data: str, a: Setting, b: Setting) -> float | None:
    """The agreement that the paper reports."""
    rows = pair_rows(paper("agreement"), a, b, table=data)
    return None if rows.empty else float(rows["spearman"].iloc[0])


# ── text ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


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


def spread(value: float, low: float, high: float, digits: int = 2) -> str:
    """A value with its interval, if it has one."""
    if low != low:
        return number(value, digits)
    return f"{number(value, digits)} [{number(low, digits)}, {number(high, digits)}]"


def percent(value: float, digits: int = 1) -> str:
    return GAP if value != value else f"{100 * value:.{digits}f}"


def percent_points(value: float, low: float, high: float) -> str:
    """A change in percentage points.

    >>> percent_points(0.012, -0.001, 0.025)
    '+1.2 [-0.1, +2.5]'
    """
    return f"{100 * value:+.1f} [{100 * low:+.1f}, {100 * high:+.1f}]"


def name_of(setting: Setting) -> str:
    evaluator, order, imputer = setting
    return f"{evaluator} {ORDERS[order]} {imputer}"
