"""How many imputed images lie outside of what is usual for real ones, by imputer, order and fraction."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from roadworthy.statistics.intervals import CONFIDENCE, share_interval

USUAL = 0.95
"""Share of the real images within the range: 5 % of them lie outside, too."""
MOST = 0.5
"""A fraction is out of scope if clearly more of its images than this lie outside."""
SCOPE_COLUMNS = [
    "imputer", "method", "order", "measure", "fraction", "limit", "outside", "low", "high", "out", "images",
]  # fmt: skip

Values = Mapping[str, NDArray[Any]]
"""measure, for real images, or "measure order fraction" to a value per image; NaN where undefined"""


def scope(
    measured: Mapping[str, Values],
    method: str,
    orders: Mapping[str, tuple[str, ...]],
    fractions: tuple[float, ...],
    confidence: float = CONFIDENCE,
) -> pd.DataFrame:
    """imputer, method, order, measure, fraction: what was measured · limit: of the 95 % range of real images: the
    confidence in the predicted class that 95 % of them reach, or the distance to the nearest real image of that class
    that 95 % of them stay within · outside: share of the imputed images beyond it, with its interval · out: clearly
    more than half are."""
    rows = []
    for imputer, values in measured.items():
        level = 1 - (1 - confidence) / max(1, len(orders[imputer]) * len(fractions))  # the largest share is named
        for measure, beyond in (("confidence", np.less), ("distance", np.greater)):
            real = values[measure][~np.isnan(values[measure])]
            if not len(real):
                continue
            limit = float(np.quantile(real, 1 - USUAL if measure == "confidence" else USUAL))
            for order in orders[imputer]:
                for fraction in (0.0, *fractions):
                    found = values[f"{measure} {order} {fraction}"] if fraction else values[measure]
                    known = found[~np.isnan(found)]
                    if not len(known):
                        continue
                    hits = beyond(known, limit).astype(np.float64)
                    low, high = share_interval(hits[None], level)
                    rows.append(
                        {
                            "imputer": imputer, "method": method, "order": order, "measure": measure,
                            "fraction": fraction, "limit": limit, "outside": hits.mean(), "low": low, "high": high,
                            "out": low > MOST, "images": len(known),
                        }
                    )  # fmt: skip
    return pd.DataFrame(rows, columns=SCOPE_COLUMNS)


def out_of_scope(table: pd.DataFrame) -> dict[tuple[str, str], list[float]]:
    """(imputer, order) to the fractions at which most images are out of scope.

    By distance, where the model has features: that a model is less sure without relevant pixels is what removal is for.
    """
    by_distance = (table["measure"] == "distance").groupby(table["imputer"]).transform("any")
    table = table[(table["measure"] == "distance") | ~by_distance.astype(bool)]
    found: dict[tuple[str, str], set[float]] = {}
    out = table[table["out"].astype(bool)]
    for imputer, order, fraction in zip(out["imputer"], out["order"], out["fraction"], strict=True):
        found.setdefault((imputer, order), set()).add(float(fraction))
    return {setting: sorted(fractions) for setting, fractions in found.items()}
