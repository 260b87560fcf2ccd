"""The leakage audit's tables: what the masks tell of the class, whether the fill shows the mask, and the conclusion.

A score can be trusted as far as the hole itself says nothing. What the masks tell (bits) only leaks as far as the fill
shows the mask (recoverability): the leak is the one times the other.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from roadworthy.audit.debiasing import GEOMETRY_COLUMNS, gamma_table
from roadworthy.audit.geometry import Geometry
from roadworthy.audit.information import bits_at_least, bits_if_optimal, chance, entropy
from roadworthy.core.results import Predictions, Recovered
from roadworthy.statistics.intervals import bounded_interval, share_interval

LITTLE, MUCH = 0.01, 0.05
"""Leaks as shares of the class's entropy: below the first none is seen, from the second on the score is not to be
trusted. With ten classes 1 % is what a reader of masks that is right in 17 % proves, 5 % one that is right in 27 %;
with two classes 56 % and 63 %."""

MASK_COLUMNS = [
    "method", "order", "fraction", "accuracy", "low", "high", "chance", "bits", "bits_low", "bits_high",
    "bits_if_optimal", "images", "class_bits", "note",
]  # fmt: skip
RECOVERY_COLUMNS = ["imputer", "masks", "fraction", "error", "auc", "low", "high", "guess", "order", "inverse", "note"]
CONCLUSION_COLUMNS = ["method", "order", "imputer", "conclusion", "why", "leak"]


class Hole(NamedTuple):
    """Masks that were filled: `masks` is "scatter", "blobs" or a method; `order` is "" for the random ones."""

    imputer: str
    masks: str
    order: str
    fraction: float


def audit_tables(
    read: Mapping[tuple[str, float], Predictions],
    recovered: Mapping[Hole, Recovered],
    shapes: Sequence[Geometry],
    orders: Sequence[str],
    fractions: Sequence[float],
) -> dict[str, pd.DataFrame]:
    """Every table of the audit by its name."""
    masks, recovery = mask_table(read, orders, fractions), recovery_table(recovered)
    gammas = pd.concat([gamma_table(one) for one in shapes]) if shapes else pd.DataFrame(columns=list(GEOMETRY_COLUMNS))
    conclusions = conclusion_table(masks, recovery)
    return {"masks": masks, "recovery": recovery, "geometry": gammas.reset_index(drop=True), "conclusions": conclusions}


def most_relevant_share(order: str, fraction: float) -> float:
    """A mask and its complement say the same: what LeRF removes at p is what MoRF keeps at 1 − p.

    >>> most_relevant_share("morf", 0.1), most_relevant_share("lerf", 0.9)
    (0.1, 0.1)
    """
    return fraction if order == "morf" else round(1 - fraction, 12)


def mask_table(
    read: Mapping[tuple[str, float], Predictions], orders: Sequence[str], fractions: Sequence[float]
) -> pd.DataFrame:
    """method, order, fraction: whose masks · accuracy, low, high: of a classifier of the masks alone, held out ·
    chance: the share of the commonest class · bits, bits_low, bits_high: of the class that this proves the masks to
    tell · bits_if_optimal: what they tell at most, if no classifier could do better · class_bits: the class's entropy.

    `read`: (method, share removed most relevant first) to what the classifier said.
    """
    rows = [
        (method, order, fraction, *_mask_row(read[method, share]))
        for method in dict.fromkeys(method for method, _ in read)
        for order in orders
        for fraction in fractions
        for share in [most_relevant_share(order, fraction)]
        if (method, share) in read
    ]
    return pd.DataFrame(rows, columns=MASK_COLUMNS)


def _mask_row(conclusion: Predictions) -> tuple[float | int | str, ...]:
    shares = np.unique(conclusion.labels, return_counts=True)[1] / len(conclusion)
    hits = conclusion.correct.astype(np.float64)[None]
    accuracy, (low, high) = float(hits.mean()), share_interval(hits)
    same = len(np.unique(conclusion.predicted)) == 1
    return (
        *(accuracy, low, high, chance(shares)),
        *(bits_at_least(value, shares) for value in (accuracy, low, high)),
        *(bits_if_optimal(accuracy, shares), len(conclusion), entropy(shares)),
        "every mask got the same answer: they are all equal, or tell nothing" if same else "",
    )


def recovery_table(recovered: Mapping[Hole, Recovered]) -> pd.DataFrame:
    """imputer, masks, fraction, order: which holes · error, low, high: share of the pixels told wrongly, with its
    interval over images · auc: how often a filled pixel looks more filled than a kept one · guess: the error of the
    best constant answer, the "cannot be told" line · inverse: the error of who calls every pixel of the fill's color
    filled, NaN where the fill has no one color · note: where neither is better than that constant answer.
    """
    rows = [
        (
            *(hole.imputer, hole.masks, hole.fraction, float(found.error.mean()), float(found.auc.mean())),
            *bounded_interval(found.error, (0.0, 1.0)),
            *(min(hole.fraction, 1 - hole.fraction), hole.order, float(found.inverse.mean())),
        )
        for hole, found in recovered.items()
    ]
    table = pd.DataFrame(rows, columns=RECOVERY_COLUMNS[:-1])
    blind = table[["error", "inverse"]].min(axis=1) >= table["guess"]
    # The predictor learned from all shares and knows none; a constant answer is chosen with the share in hand.
    table["note"] = np.where(blind, "no better than a constant answer, which knows the share: counts as not told", "")
    return table


def conclusion_table(masks: pd.DataFrame, recovery: pd.DataFrame) -> pd.DataFrame:
    """method, order, imputer: of which score · conclusion: "leak-free", "leaks a little" or "leaks" · why: in words ·
    leak: the share of the class's entropy that comes through the hole, at the worst fraction.
    """
    both = recovery.rename(columns={"masks": "method"})[
        ["method", "order", "imputer", "fraction", "error", "inverse", "guess"]
    ]
    met = masks.merge(both, on=["method", "order", "fraction"], how="inner", sort=False)
    rows = [
        (*setting, *_conclusion(block.to_dict("records")))
        for setting, block in met.groupby(["method", "order", "imputer"], sort=False)
    ]
    return pd.DataFrame(rows, columns=CONCLUSION_COLUMNS)


def _conclusion(rows: Sequence[Mapping[Any, Any]]) -> tuple[str, str, float]:
    worst = max(rows, key=lambda row: (leak(row), row["accuracy"]))
    value = leak(worst)
    conclusion = "leak-free" if value < LITTLE else "leaks a little" if value < MUCH else "leaks"
    reading = f"masks alone tell the class in {worst['accuracy']:.0%} [{worst['low']:.0%}, {worst['high']:.0%}]"
    place = f"at {worst['fraction']:.0%} removed {reading}, chance is {worst['chance']:.0%}"
    most = max(_largest_leak(row) for row in rows)
    doubt = f"; up to {most:.0%} of the class is not excluded: take more images" if most >= MUCH > value else ""
    if worst["low"] <= worst["chance"]:
        return conclusion, f"{place}: not clearly more{doubt}", value
    shown = f"the fill shows {recoverability(worst):.0%} of the mask"
    share = f"{worst['bits']:.2f} of {worst['class_bits']:.2f} bits" if worst["class_bits"] else "nothing"
    return conclusion, f"{place}: {share}; {shown}: {value:.1%} of the class comes through{doubt}", value


def leak(row: Mapping[Any, Any]) -> float:
    """The share of the class's entropy that the masks are proven to tell, times the share of the mask that shows."""
    if row["low"] <= row["chance"] or not row["class_bits"]:
        return 0.0
    return float(row["bits"] / row["class_bits"] * recoverability(row))


def _largest_leak(row: Mapping[Any, Any]) -> float:
    """What the upper end of the accuracy's interval would prove."""
    return float(row["bits_high"] / row["class_bits"] * recoverability(row)) if row["class_bits"] else 0.0


def recoverability(row: Mapping[Any, Any]) -> float:
    """How much of the guesswork about filled pixels the better of predictor and trivial inverse takes away.

    >>> recoverability({"error": 0.2, "inverse": 0.05, "guess": 0.5})
    0.9
    >>> recoverability({"error": 0.6, "inverse": float("nan"), "guess": 0.5})
    0.0
    """
    error = float(np.nanmin([row["error"], row["inverse"]]))
    return max(0.0, 1 - error / row["guess"]) if row["guess"] else 0.0
