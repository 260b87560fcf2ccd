"""The tables of a leakage audit, formatted for people."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd


class Section(NamedTuple):
    title: str
    text: str
    table: pd.DataFrame


class LeakCell(NamedTuple):
    text: str
    found: bool
    why: str
    heat: int
    """0 to 10, by bits"""


class LeakMatrix(NamedTuple):
    """What the audit found: a row per method, a column per imputer and order."""

    columns: Sequence[str]
    rows: Sequence[tuple[str, Sequence[LeakCell | None]]]
    found: int
    audited: int


MUCH = 0.5
"""bits at which a cell has its full color"""


def leak_matrix(tables: Mapping[str, pd.DataFrame], methods: Sequence[str], first: str) -> LeakMatrix | None:
    """Methods in the order given, then the rest of the audit; the imputer `first` before the others."""
    table = tables.get("conclusions")
    if table is None or table.empty:
        return None
    imputers = sorted(dict.fromkeys(table["imputer"]), key=lambda name: name != first)
    orders = sorted(dict.fromkeys(table["order"]), key=lambda order: order != "morf")
    cells = {
        (row["method"], row["imputer"], row["order"]): _leak(row["found"], row["bits"], row["conclusion"], row["why"])
        for row in table.to_dict("records")
    }
    names = [name for name in methods if name in set(table["method"])]
    names += [name for name in dict.fromkeys(table["method"]) if name not in names]
    settings = [(imputer, order) for imputer in imputers for order in orders]
    rows = [(name, [cells.get((name, *setting)) for setting in settings]) for name in names]
    shown = {"morf": "MoRF", "lerf": "LeRF"}
    columns = [f"{imputer} · {shown.get(order, order)}" for imputer, order in settings]
    return LeakMatrix(columns, rows, sum(cell.found for cell in cells.values()), len(cells))


def _leak(found: bool, bits: float, conclusion: str, why: str) -> LeakCell:
    text = f"≥ {bits:.2f} bits" if found else "none found"
    return LeakCell(text, bool(found), f"{conclusion}; {why}", round(10 * min(1.0, bits / MUCH)) if found else 0)


def sections(tables: Mapping[str, pd.DataFrame]) -> list[Section]:
    """One per audit table, conclusions first."""
    return [
        Section(title, text, formatted(tables[name]))
        for name, (title, text, formatted) in _SECTIONS.items()
        if name in tables and len(tables[name])
    ]


def _percent(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.1%}"


def _number(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.2f}"


def _with_interval(table: pd.DataFrame, column: str) -> list[str]:
    rows = zip(table[column], table["low"], table["high"], strict=True)
    return [f"{_percent(value)} [{_percent(low)}, {_percent(high)}]" for value, low, high in rows]


def _order(table: pd.DataFrame) -> pd.Series:
    return table["order"].map({"morf": "MoRF", "lerf": "LeRF"}).fillna(table["order"])


def _conclusions(table: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "method": table["method"],
            "order": _order(table),
            "imputer": table["imputer"],
            "conclusion": table["conclusion"],
            "why": table["why"],
        }
    )


def _masks(table: pd.DataFrame) -> pd.DataFrame:
    """One row per method and order, one column per fraction removed."""
    long = pd.DataFrame(
        {
            "method": table["method"],
            "order": _order(table),
            "chance": table["chance"].map(_percent),
            "fraction": table["fraction"].map("{:.0%}".format),
            "value": _with_words(table),
        }
    )
    return _wide(long, ["method", "order", "chance"])


def _with_words(table: pd.DataFrame) -> list[str]:
    """Accuracies, each with what it proves if the table says so."""
    accuracies = _with_interval(table, "accuracy")
    if "conclusion" not in table:
        return accuracies
    return [f"{accuracy}: {words}" for accuracy, words in zip(accuracies, table["conclusion"], strict=True)]


def _leakage(table: pd.DataFrame) -> pd.DataFrame:
    long = pd.DataFrame(
        {
            "method": table["method"],
            "order": _order(table),
            "imputer": table["imputer"],
            "chance": table["chance"].map(_percent),
            "fraction": table["fraction"].map("{:.0%}".format),
            "value": _with_interval(table, "accuracy"),
        }
    )
    return _wide(long, ["method", "order", "imputer", "chance"])


def _detection(table: pd.DataFrame) -> pd.DataFrame:
    long = pd.DataFrame(
        {
            "imputer": table["imputer"],
            "masks": table["masks"],
            "order": _order(table).fillna("") if "order" in table else "",
            "fraction": table["fraction"].map("{:.0%}".format),
            "value": table["auc"].map(_number),
        }
    )
    return _wide(long, ["imputer", "masks", "order"])


def _geometry(table: pd.DataFrame) -> pd.DataFrame:
    """γ by fraction removed, with the optimum where known; blur is a mean over the fractions."""
    cells = zip(table["gamma"], table["clipped"], table["optimum"], strict=True)
    blur = table.groupby(["method", "order"])["blur"].transform("mean")
    long = pd.DataFrame(
        {
            "method": table["method"],
            "order": _order(table),
            "blur": blur.map(_number),
            "fraction": table["fraction"].map("{:.0%}".format),
            "value": [
                _number(gamma) + (" clipped" if clipped else "") + ("" if np.isnan(best) else f" (best {best:.2f})")
                for gamma, clipped, best in cells
            ],
        }
    )
    return _wide(long, ["method", "order", "blur"])


def _wide(long: pd.DataFrame, index: list[str]) -> pd.DataFrame:
    wide = long.pivot_table(index=index, columns="fraction", values="value", aggfunc="first", sort=False)
    return wide.reset_index().fillna("–").rename_axis(columns=None)


_SECTIONS: Mapping[str, tuple[str, str, Callable[[pd.DataFrame], pd.DataFrame]]] = {
    "conclusions": (
        "Does the evaluation leak?",
        "Each mask is imputed into another image, and a reader predicts the class of the mask's own image from the "
        "result. What it finds came from the mask, through the imputation: at least so many bits. Where none is found, "
        "more masks or a better reader might find some.",
        _conclusions,
    ),
    "leakage": (
        "Class information that comes through the imputation",
        "Accuracy of that reader on held-out masks, with its 95 % interval.",
        _leakage,
    ),
    "masks": (
        "Class information in the masks",
        "Accuracy of a classifier that sees only which pixels were removed, with its 95 % interval, and the bits that "
        "it proves.",
        _masks,
    ),
    "detection": (
        "Detection of imputed pixels",
        "AUC of a small network that classifies pixels as imputed or kept: 0.5 means no detection, 1 that the image "
        "reveals the whole mask.",
        _detection,
    ),
    "geometry": (
        "Geometry of the masks",
        "γ is the share of the removed pixels' variance that the imputer does not restore: low for scattered pixels, "
        "near 1 for large regions. Scores of methods with very different γ are not directly comparable.",
        _geometry,
    ),
    "leads": (
        "How much of a lead is geometry?",
        "Each method against the next in rank, imputed with linear. Derived for retrained models; for others only an "
        "indication.",
        lambda table: pd.DataFrame({"lead": table["text"]}),
    ),
}
