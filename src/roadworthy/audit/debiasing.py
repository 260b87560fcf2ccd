"""Geometric debiasing (PAPER 7): from what the linear fill misses to γ, to Acc', and to whose lead is geometry.

γ is the share of the removed pixels' variance that the linear fill does not bring back. If a drop in accuracy is that
share of what losing the pixels outright would cost, then Acc' = Acc(x) − (Acc(x) − Acc(x'))/γ is free of geometry.
"""

from collections.abc import Mapping
from itertools import pairwise

import numpy as np
import pandas as pd
from scipy import stats

from roadworthy.audit.geometry import Geometry, Refill
from roadworthy.core.errors import InputError, RangeError
from roadworthy.statistics.intervals import CONFIDENCE

SMALLEST = 0.05
"""A γ below this is taken for this: dividing by less would blow up the noise of the accuracies."""
GEOMETRY_COLUMNS = (
    "method",
    "order",
    "fraction",
    "gamma",
    "clipped",
    "optimum",
    "blur",
    "raw",
    "low",
    "high",
    "images",
)
LEAD_COLUMNS = [
    *(
        "evaluator",
        "order",
        "method",
        "rival",
        "lead",
        "geometry",
        "gamma",
        "rival_gamma",
        "defined",
        "fractions",
        "text",
    )
]
_PLACE = ["method", "order", "fraction"]


def gamma_table(
    geometry: Geometry, optimum: Mapping[tuple[str, str, float], float] | None = None, confidence: float = CONFIDENCE
) -> pd.DataFrame:
    """A row per method, order and fraction: `gamma` in [0.05, 1], `clipped` where that cost it its `raw` value.

    `low` and `high` are the ends of the raw value's interval over images. `optimum` is the γ of the best possible fill,
    NaN where nobody knows it; `blur` the mean blurriness of the method's maps.
    """
    known = optimum or {}
    rows = []
    for point in geometry.refills:
        raw, error = _ratio(point)
        half = float(stats.t.isf((1 - confidence) / 2, max(len(point.missed) - 1, 1))) * error
        best = known.get((point.method, point.order, point.fraction), np.nan)
        blur = float(geometry.blur[point.method].mean())
        where = (point.method, point.order, point.fraction)
        rows.append((*where, *clipped_gamma(raw), best, blur, raw, raw - half, raw + half, len(point.missed)))
    return pd.DataFrame(rows, columns=list(GEOMETRY_COLUMNS))


def clipped_gamma(raw: float) -> tuple[float, bool]:
    """The γ to divide by, and whether it had to be clipped.

    >>> clipped_gamma(0.4), clipped_gamma(0.003), clipped_gamma(1.02)
    ((0.4, False), (0.05, True), (1.0, True))
    """
    gamma = min(max(raw, SMALLEST), 1.0)
    return gamma, gamma != raw


def _ratio(point: Refill) -> tuple[float, float]:
    """γ and its standard error over images (of a ratio of two sums, to first order)."""
    total, count = float(point.spread.sum()), len(point.spread)
    if total == 0:
        raise InputError(f"{point.method}: the removed pixels are the same in every image of a class; γ has no meaning")
    raw = float(point.missed.sum()) / total
    rest = point.missed - raw * point.spread
    return raw, float(np.sqrt(count / max(count - 1, 1) * np.square(rest).sum()) / total)


def debiased(curves: pd.DataFrame, geometry: pd.DataFrame, chance: float) -> pd.DataFrame:
    """The points of `curves` (of one imputer, the linear one) that have a γ, with `gamma` and `debiased`, Acc'.

    Acc' below `chance` or above 1 is undefined (NaN): there the model of a proportional loss does not hold. `applies`
    marks the evaluator that the debiasing is made for, one that is retrained on the filled images.
    """
    if not 0 <= chance < 1:
        raise RangeError(f"chance={chance}: give the accuracy of a blind guess, such as 1/classes")
    if curves["imputer"].nunique() != 1:
        raise InputError(
            f"γ is that of one linear fill, the curves have {curves['imputer'].nunique()} imputers: pick one"
        )
    setting = ["method", "order", "evaluator"]
    whole = curves.loc[curves["fraction"] == 0, [*setting, "accuracy"]].rename(columns={"accuracy": "whole"})
    points = curves[curves["fraction"] > 0].merge(whole, on=setting)
    points = points.merge(geometry[[*_PLACE, "gamma", "clipped"]], on=_PLACE)
    value = points["whole"] - (points["whole"] - points["accuracy"]) / points["gamma"]
    # Rounding must not decide about an accuracy that is chance, or 1, exactly.
    points["debiased"] = value.where((value > chance - 1e-9) & (value < 1 + 1e-9))
    points["applies"] = points["evaluator"] == "retrain"
    columns = [*setting, "imputer", "fraction", "whole", "accuracy", "gamma", "clipped", "debiased", "applies"]
    return points[columns].reset_index(drop=True)


def linear_leads(curves: pd.DataFrame, geometry: pd.DataFrame, chance: float) -> pd.DataFrame:
    """`leads` of the curves that were filled linearly, at the fractions whose γ is known."""
    linear = curves[curves["imputer"] == "linear"]
    points = debiased(linear, geometry, chance) if len(linear) else linear
    return leads(points) if len(points) else pd.DataFrame(columns=LEAD_COLUMNS)


def leads(points: pd.DataFrame) -> pd.DataFrame:
    """Per order and evaluator, every method against the next behind it: how much of its lead is geometry, in words too.

    `points` are those of `debiased`. A drop is γ times a debiased drop, drop = γ·d, so the difference of two is split
    exactly: (γa − γb)·(da + db)/2 is geometry, (da − db)·(γa + γb)/2 is not. Means over the fractions at which both
    debiased accuracies are defined; more drop leads in MoRF, less in LeRF.
    """
    rows = []
    for (evaluator, order), block in points.groupby(["evaluator", "order"], sort=False):
        sign = 1 if order == "morf" else -1
        drops = (block["whole"] - block["accuracy"]).groupby(block["method"], sort=False).mean()
        ranked = (sign * drops).sort_values(ascending=False, kind="stable").index
        by_method = {name: part.set_index("fraction") for name, part in block.groupby("method")}
        for method, rival in pairwise(ranked):
            rows.append((evaluator, order, method, rival, *_split(by_method[method], by_method[rival], sign)))
    table = pd.DataFrame(rows, columns=LEAD_COLUMNS[:-1])
    table["text"] = [_sentence(row) for _, row in table.iterrows()]
    return table


def _split(own: pd.DataFrame, other: pd.DataFrame, sign: int) -> tuple[float, float, float, float, int, int]:
    """The lead, its part that is geometry, both γ, at how many fractions they are defined and how many there are."""
    both = own["debiased"].notna() & other["debiased"].notna()
    if not both.any():
        return np.nan, np.nan, np.nan, np.nan, 0, len(both)
    first, second = own[both], other[both]
    loss, rival_loss = (part["whole"] - part["debiased"] for part in (first, second))
    lead = (first["whole"] - first["accuracy"]) - (second["whole"] - second["accuracy"])
    geometry = (first["gamma"] - second["gamma"]) * (loss + rival_loss) / 2
    gammas = float(first["gamma"].mean()), float(second["gamma"].mean())
    return sign * float(lead.mean()), sign * float(geometry.mean()), *gammas, int(both.sum()), len(both)


def _sentence(row: pd.Series) -> str:
    order = {"morf": "MoRF", "lerf": "LeRF"}.get(row["order"], row["order"])
    pair = f"{row['method']} over {row['rival']} in {order}"
    if not row["defined"]:
        return f"{pair}: how much is geometry cannot be told, no debiased accuracy lies between chance and 1."
    gammas = f"γ {row['gamma']:.2f} against {row['rival_gamma']:.2f}"
    where = (
        f"at {row['defined']} of {row['fractions']} fractions" if row["defined"] < row["fractions"] else "on average"
    )
    lead, part = row["lead"], row["geometry"]
    text = f"{pair}: {where} it leads by {100 * lead:.1f} points of accuracy"
    if lead <= 0:
        return f"{pair}: {where} there is no lead ({100 * lead:.1f} points of accuracy; {gammas})."
    if part <= 0:
        return f"{text}, none of it geometry, which cost it {abs(100 * part):.1f} ({gammas})."
    if part >= lead:
        return f"{text}, all of it geometry, which alone gives {100 * part:.1f} ({gammas})."
    return f"{text}, {100 * part:.1f} of them ({part / lead:.0%}) by geometry ({gammas})."
