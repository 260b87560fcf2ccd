"""The tables of a leakage audit as people read them."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd


class Section(NamedTuple):
    title: str
    text: str
    table: pd.DataFrame


def sections(audits: Mapping[str, pd.DataFrame]) -> list[Section]:
    """In the order in which one asks: is there a leak, what do masks tell, is the fill seen, does geometry help?"""
    return [
        Section(title, text, shown(audits[name]))
        for name, (title, text, shown) in _SECTIONS.items()
        if name in audits and len(audits[name])
    ]


def _share(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.1%}"


def _number(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.2f}"


def _between(table: pd.DataFrame, value: str, show: Callable[[float], str]) -> list[str]:
    ends = zip(table[value], table["low"], table["high"], strict=True)
    return [f"{show(middle)} [{show(low)}, {show(high)}]" for middle, low, high in ends]


def _order(table: pd.DataFrame) -> pd.Series:
    return table["order"].map({"morf": "MoRF", "lerf": "LeRF"}).fillna(table["order"])


def _verdicts(table: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "method": table["method"],
            "order": _order(table),
            "filled by": table["imputer"],
            "conclusion": table["conclusion"],
            "why": table["why"],
        }
    )


def _masks(table: pd.DataFrame) -> pd.DataFrame:
    """A row per method and order, a column per share removed."""
    long = pd.DataFrame(
        {
            "method": table["method"],
            "order": _order(table),
            "chance": table["chance"].map(_share),
            "share": table["fraction"].map("{:.0%}".format),
            "value": _between(table, "accuracy", _share),
        }
    )
    return _wide(long, ["method", "order", "chance"])


def _recovery(table: pd.DataFrame) -> pd.DataFrame:
    """Each error beside that of the best constant answer."""
    seen = zip(_between(table, "error", _share), table["guess"], strict=True)
    long = pd.DataFrame(
        {
            "filled by": table["imputer"],
            "masks": table["masks"],
            "order": _order(table).fillna("") if "order" in table else "",
            "share": table["fraction"].map("{:.0%}".format),
            "value": [f"{error}, guessing {_share(guess)}" for error, guess in seen],
        }
    )
    return _wide(long, ["filled by", "masks", "order"])


def _geometry(table: pd.DataFrame) -> pd.DataFrame:
    """γ by share removed, with the optimum where it is known; the blur is a mean over the shares."""
    cells = zip(table["gamma"], table["clipped"], table["optimum"], strict=True)
    blur = table.groupby(["method", "order"])["blur"].transform("mean")
    long = pd.DataFrame(
        {
            "method": table["method"],
            "order": _order(table),
            "blur": blur.map(_number),
            "share": table["fraction"].map("{:.0%}".format),
            "value": [
                _number(gamma) + (" clipped" if clipped else "") + ("" if np.isnan(best) else f" (best {best:.2f})")
                for gamma, clipped, best in cells
            ],
        }
    )
    return _wide(long, ["method", "order", "blur"])


def _wide(long: pd.DataFrame, index: list[str]) -> pd.DataFrame:
    wide = long.pivot_table(index=index, columns="share", values="value", aggfunc="first", sort=False)
    return wide.reset_index().fillna("–").rename_axis(columns=None)


_SECTIONS: Mapping[str, tuple[str, str, Callable[[pd.DataFrame], pd.DataFrame]]] = {
    "conclusions": (
        "Does the evaluation leak?",
        "A leak is class information that the shape of the holes carries into the filled image.",
        _verdicts,
    ),
    "masks": (
        "What the masks alone tell",
        "Accuracy of a classifier that sees only which pixels are gone, with its 95 % interval. Far above chance, the "
        "masks themselves name the class.",
        _masks,
    ),
    "recovery": (
        "Can the filled pixels be seen?",
        "Error of a small network that tells filled pixels from kept ones. The nearer to guessing, the better the fill "
        "hides the holes.",
        _recovery,
    ),
    "geometry": (
        "Does the geometry of the masks help?",
        "γ is the share of the removed pixels' variance that the fill does not bring back: low where holes are "
        "scattered, near 1 where they are large. Methods with very different γ are not compared on equal terms.",
        _geometry,
    ),
    "leads": (
        "How much of a lead is geometry?",
        "Each method against the next behind it, with the linear fill. Made for models that were retrained; for others "
        "an indication.",
        lambda table: pd.DataFrame({"lead": table["text"]}),
    ),
}
