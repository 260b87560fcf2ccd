"""Geometric debiasing (paper, older supplement): γ, accuracies free of geometry, and how much of a lead is geometry.

γ is the share of the removed pixels' variance that the linear imputation does not restore. If the drop in accuracy is
this share of what losing the pixels entirely would cost, then Acc' = Acc(x) − (Acc(x) − Acc(x'))/γ is free of geometry.
"""

from collections.abc import Mapping
from itertools import pairwise

import numpy as np
import pandas as pd
from scipy import stats

from roadworthy.audit.geometry import Geometry, Reconstruction
from roadworthy.core.errors import InputError, RangeError
from roadworthy.statistics.intervals import CONFIDENCE

MIN_GAMMA = 0.05
"""Smaller values of γ are clipped to this: dividing by less would amplify the noise of the accuracies."""
GEOMETRY_COLUMNS = (
    "method", "order", "fraction", "gamma", "clipped", "optimum", "blur", "raw", "low", "high", "images",
)  # fmt: skip
LEAD_COLUMNS = [
    "evaluator", "order", "method", "rival", "lead", "geometry", "gamma", "rival_gamma", "defined", "fractions", "text",
]  # fmt: skip
ABOVE_WHOLE = "undefined: the accuracy is above that of whole images"
BELOW_CHANCE = "undefined: the debiased accuracy is below chance"
CLIPPED = "γ is clipped: divided by the nearest allowed value"
_POINT = ["method", "order", "fraction"]


def gamma_table(
    geometry: Geometry, optimum: Mapping[tuple[str, str, float], float] | None = None, confidence: float = CONFIDENCE
) -> pd.DataFrame:
    """One row per method, order and fraction: `gamma` in [0.05, 1]; `clipped` where that differs from the `raw` value.

    `low` and `high` bound the raw value's interval over images. `optimum` is the γ of the best possible imputation, NaN
    where unknown; `blur` the mean blurriness of the method's maps.
    """
    known = optimum or {}
    rows = []
    for point in geometry.reconstructions:
        raw, error = _ratio(point)
        half = float(stats.t.isf((1 - confidence) / 2, max(len(point.residual) - 1, 1))) * error
        setting = (point.method, point.order, point.fraction)
        blur = float(geometry.blur[point.method].mean())
        bounds = (raw, raw - half, raw + half)
        rows.append((*setting, *clipped_gamma(raw), known.get(setting, np.nan), blur, *bounds, len(point.residual)))
    return pd.DataFrame(rows, columns=list(GEOMETRY_COLUMNS))


def clipped_gamma(raw: float) -> tuple[float, bool]:
    """γ clipped to [0.05, 1], and whether that changed it.

    >>> clipped_gamma(0.4), clipped_gamma(0.003), clipped_gamma(1.02)
    ((0.4, False), (0.05, True), (1.0, True))
    """
    gamma = min(max(raw, MIN_GAMMA), 1.0)
    return gamma, gamma != raw


def _ratio(point: Reconstruction) -> tuple[float, float]:
    """γ and its standard error over images (of a ratio of two sums, to first order)."""
    total, count = float(point.total.sum()), len(point.total)
    if total == 0:
        raise InputError(f"{point.method}: the removed pixels do not vary within any class; γ is undefined")
    raw = float(point.residual.sum()) / total
    deviation = point.residual - raw * point.total
    return raw, float(np.sqrt(count / max(count - 1, 1) * np.square(deviation).sum()) / total)


def debiased(curves: pd.DataFrame, geometry: pd.DataFrame, chance: float) -> pd.DataFrame:
    """The points of `curves` (of the linear imputer only) that have a γ, with columns `gamma` and `debiased`, Acc'.

    Acc' is undefined (NaN) where the assumption of a loss proportional to γ does not hold: where removal raised the
    accuracy above that of whole images, as dividing a gain by γ only enlarges it, and where the result is below
    `chance`. `note` says which, and where γ was clipped. `applies` marks the evaluator that debiasing was derived for:
    a model retrained on imputed images.
    """
    if not 0 <= chance < 1:
        raise RangeError(f"chance={chance}: give the accuracy of guessing, such as 1/classes")
    if curves["imputer"].nunique() != 1:
        raise InputError(
            f"the curves have {curves['imputer'].nunique()} imputers: γ holds for the linear one; select its curves"
        )
    setting = ["method", "order", "evaluator"]
    whole = curves.loc[curves["fraction"] == 0, [*setting, "accuracy"]].rename(columns={"accuracy": "whole"})
    points = curves[curves["fraction"] > 0].merge(whole, on=setting)
    points = points.merge(geometry[[*_POINT, "gamma", "clipped"]], on=_POINT)
    value = points["whole"] - (points["whole"] - points["accuracy"]) / points["gamma"]
    # Rounding must not exclude an accuracy of exactly chance, or of exactly that of whole images.
    raised, below = points["accuracy"] > points["whole"] + 1e-9, value < chance - 1e-9
    points["debiased"] = value.mask(raised | below)
    clipped = points["clipped"].astype(bool)
    notes = [ABOVE_WHOLE, BELOW_CHANCE, CLIPPED]
    points["note"] = np.select([raised, below, clipped], notes, default="")
    points["applies"] = points["evaluator"] == "retrain"
    columns = [*setting, "imputer", "fraction", "whole", "accuracy", "gamma", "clipped", "debiased", "applies", "note"]
    return points[columns].reset_index(drop=True)


def linear_leads(curves: pd.DataFrame, geometry: pd.DataFrame, chance: float) -> pd.DataFrame:
    """`leads` of `curves`, those of one linear imputer, at the fractions with a known γ."""
    points = debiased(curves, geometry, chance) if len(curves) else curves
    return leads(points) if len(points) else pd.DataFrame(columns=LEAD_COLUMNS)


def leads(points: pd.DataFrame) -> pd.DataFrame:
    """Per order and evaluator, each method against the next in rank: its lead, and how much of it is geometry.

    `points` is the table of `debiased`. A drop is γ times a debiased drop, drop = γ·d, so the difference of two drops
    splits exactly: (γa − γb)·(da + db)/2 is geometry, (da − db)·(γa + γb)/2 is not. Means over the fractions at which
    both debiased accuracies are defined; the larger drop leads in MoRF, the smaller in LeRF. `text` is a sentence.
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


def _split(method: pd.DataFrame, rival: pd.DataFrame, sign: int) -> tuple[float, float, float, float, int, int]:
    """The lead, its geometric part, both γ, the number of fractions where both are defined, and of all fractions."""
    both = method["debiased"].notna() & rival["debiased"].notna()
    if not both.any():
        return np.nan, np.nan, np.nan, np.nan, 0, len(both)
    first, second = method[both], rival[both]
    loss, rival_loss = (part["whole"] - part["debiased"] for part in (first, second))
    lead = (first["whole"] - first["accuracy"]) - (second["whole"] - second["accuracy"])
    geometry = (first["gamma"] - second["gamma"]) * (loss + rival_loss) / 2
    gammas = float(first["gamma"].mean()), float(second["gamma"].mean())
    return sign * float(lead.mean()), sign * float(geometry.mean()), *gammas, int(both.sum()), len(both)


def _sentence(row: pd.Series) -> str:
    order = {"morf": "MoRF", "lerf": "LeRF"}.get(row["order"], row["order"])
    pair = f"{row['method']} over {row['rival']} in {order}"
    if not row["defined"]:
        reason = "no debiased accuracy lies between chance and that of whole images"
        return f"{pair}: the share of geometry is undefined, as {reason}."
    gammas = f"γ {row['gamma']:.2f} vs {row['rival_gamma']:.2f}"
    where = (
        f"at {row['defined']} of {row['fractions']} fractions" if row["defined"] < row["fractions"] else "on average"
    )
    lead, part = row["lead"], row["geometry"]
    text = f"{pair}: {where} a lead of {100 * lead:.1f} percentage points"
    if lead <= 0:
        return f"{pair}: {where} no lead ({100 * lead:.1f} percentage points; {gammas})."
    if part <= 0:
        return f"{text}, none of it due to geometry, which cost {abs(100 * part):.1f} ({gammas})."
    if part >= lead:
        return f"{text}, all of it due to geometry, which alone gives {100 * part:.1f} ({gammas})."
    return f"{text}, {100 * part:.1f} of them ({part / lead:.0%}) due to geometry ({gammas})."
