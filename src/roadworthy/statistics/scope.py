"""How many imputed images lie outside of what is usual for real ones, by imputer, order and fraction."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from roadworthy.statistics.intervals import CONFIDENCE, bounded_interval, share_interval

USUAL = 0.95
"""Share of the real images within the range: 5 % of them lie outside, too."""
REFERENCE = "reference"
"""Arrays "reference fraction": the probability of the class of the real image if that much is removed at random."""
MOST = 0.5
"""A fraction is out of scope if clearly more of its images than this lie outside."""
SCOPE_COLUMNS = [
    "imputer", "method", "order", "measure", "fraction", "limit", "outside", "low", "high", "out", "r_oms",
    "r_oms_low", "r_oms_high", "images",
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
    more than half are · r_oms: the mean probability that the model gives to the class it predicts for the real image,
    if that fraction is removed at random: the same for both orders and measures, with its interval."""
    rows = []
    for imputer, values in measured.items():
        level = 1 - (1 - confidence) / max(1, len(orders[imputer]) * len(fractions))  # the largest share is named
        kept = _reference(values, fractions, level)
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
                            "out": low > MOST,
                            **kept[fraction], "images": len(known),
                        }
                    )  # fmt: skip
    return pd.DataFrame(rows, columns=SCOPE_COLUMNS)


def _reference(values: Values, fractions: tuple[float, ...], level: float) -> dict[float, dict[str, float]]:
    """R-OMS(s) = mean over images x of p_c(x)(x with a random share s removed and imputed), c(x) = argmax p(x).

    Blücher et al., arXiv:2401.06654, as their code computes it: `which_ood_measure: label` in scripts/plot_ood.py of
    github.com/bluecher31/pixel-flipping, which takes c(x) from the image with the smallest removal.
    """
    found = {}
    for fraction in (0.0, *fractions):
        kept = values[f"{REFERENCE} {fraction}"] if fraction else values["confidence"]
        low, high = bounded_interval(kept[None].astype(np.float64), (0.0, 1.0), level)
        found[fraction] = {"r_oms": float(kept.mean()), "r_oms_low": low, "r_oms_high": high}
    return found


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
