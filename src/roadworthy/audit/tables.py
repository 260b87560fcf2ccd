"""The audit's tables: class information in the masks, detection of imputed pixels, geometry, and the conclusions.

What the masks reveal about the class (bits) leaks only as far as the imputed image reveals the mask (detectability):
the leak is their product.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from roadworthy.audit.debiasing import GEOMETRY_COLUMNS, gamma_table
from roadworthy.audit.geometry import Geometry
from roadworthy.audit.information import bits_at_least, bits_if_optimal, chance, entropy
from roadworthy.core.results import MaskDetection, Predictions
from roadworthy.statistics.intervals import bounded_interval, share_interval

LITTLE, MUCH = 0.01, 0.05
"""Leaks as shares of the class entropy: below the first no leak is reported, from the second on the score should not
be trusted. With ten classes a mask classifier proves 1 % at an accuracy of 17 % and 5 % at 27 %; with two classes at
56 % and 63 %."""

MASK_COLUMNS = [
    "method", "order", "fraction", "accuracy", "low", "high", "chance", "bits", "bits_low", "bits_high",
    "bits_if_optimal", "images", "class_bits", "note",
]  # fmt: skip
DETECTION_COLUMNS = ["imputer", "masks", "fraction", "error", "auc", "low", "high", "guess", "order", "inverse", "note"]
CONCLUSION_COLUMNS = ["method", "order", "imputer", "conclusion", "why", "leak"]


class DetectionSetting(NamedTuple):
    """Where imputed pixels are detected: `masks` is "scatter", "blobs" or a method; `order` is "" for random masks."""

    imputer: str
    masks: str
    order: str
    fraction: float


def audit_tables(
    mask_predictions: Mapping[tuple[str, float], Predictions],
    detections: Mapping[DetectionSetting, MaskDetection],
    geometries: Sequence[Geometry],
    orders: Sequence[str],
    fractions: Sequence[float],
) -> dict[str, pd.DataFrame]:
    """The tables masks, detection, geometry and conclusions, by name."""
    masks, detection = mask_table(mask_predictions, orders, fractions), detection_table(detections)
    gammas = [gamma_table(geometry) for geometry in geometries]
    geometry = pd.concat(gammas) if gammas else pd.DataFrame(columns=list(GEOMETRY_COLUMNS))
    return {
        "masks": masks,
        "detection": detection,
        "geometry": geometry.reset_index(drop=True),
        "conclusions": conclusion_table(masks, detection),
    }


def most_relevant_share(order: str, fraction: float) -> float:
    """The fraction at which MoRF has the same mask, or its complement: LeRF removes at p what MoRF keeps at 1 − p.

    >>> most_relevant_share("morf", 0.1), most_relevant_share("lerf", 0.9)
    (0.1, 0.1)
    """
    return fraction if order == "morf" else round(1 - fraction, 12)


def mask_table(
    predictions: Mapping[tuple[str, float], Predictions], orders: Sequence[str], fractions: Sequence[float]
) -> pd.DataFrame:
    """One row per method, order and fraction; `predictions` of the mask classifier by method and `most_relevant_share`.

    accuracy, low, high: of the mask classifier, cross-validated · chance: the share of the most frequent class · bits,
    bits_low, bits_high: class information in the masks that the accuracy and its interval prove · bits_if_optimal: at
    most this much, if no classifier could do better · class_bits: entropy of the class.
    """
    rows = [
        (method, order, fraction, *_mask_row(predictions[method, share]))
        for method in dict.fromkeys(method for method, _ in predictions)
        for order in orders
        for fraction in fractions
        for share in [most_relevant_share(order, fraction)]
        if (method, share) in predictions
    ]
    return pd.DataFrame(rows, columns=MASK_COLUMNS)


def _mask_row(predictions: Predictions) -> tuple[float | int | str, ...]:
    shares = np.unique(predictions.labels, return_counts=True)[1] / len(predictions)
    hits = predictions.correct.astype(np.float64)[None]
    accuracy, (low, high) = float(hits.mean()), share_interval(hits)
    constant = len(np.unique(predictions.predicted)) == 1
    return (
        *(accuracy, low, high, chance(shares)),
        *(bits_at_least(value, shares) for value in (accuracy, low, high)),
        *(bits_if_optimal(accuracy, shares), len(predictions), entropy(shares)),
        "the same prediction for every mask: they are all equal, or carry no class information" if constant else "",
    )


def detection_table(detections: Mapping[DetectionSetting, MaskDetection]) -> pd.DataFrame:
    """One row per imputer, kind of masks, order and fraction.

    error, low, high: share of misclassified pixels with its interval over images · auc: of imputed against kept pixels
    · guess: the error of the best constant prediction, which means no detection · inverse: the error of calling every
    pixel of the imputed color imputed, NaN unless the imputer uses one color · note: where neither error beats a guess.
    """
    rows = [
        (
            *(setting.imputer, setting.masks, setting.fraction),
            *(float(detection.error.mean()), float(detection.auc.mean())),
            *bounded_interval(detection.error, (0.0, 1.0)),
            *(min(setting.fraction, 1 - setting.fraction), setting.order, float(detection.trivial_error.mean())),
        )
        for setting, detection in detections.items()
    ]
    table = pd.DataFrame(rows, columns=DETECTION_COLUMNS[:-1])
    undetected = table[["error", "inverse"]].min(axis=1) >= table["guess"]
    # The constant prediction knows the fraction; the detector was trained on all fractions and does not.
    note = "no better than a constant prediction, which knows the fraction: counts as not detected"
    table["note"] = np.where(undetected, note, "")
    return table


def conclusion_table(masks: pd.DataFrame, detection: pd.DataFrame) -> pd.DataFrame:
    """One row per method, order and imputer.

    conclusion: "leak-free", "leaks a little" or "leaks" · why: in words · leak: the share of the class entropy that the
    imputed masks leak, at the worst fraction.
    """
    columns = ["method", "order", "imputer", "fraction", "error", "inverse", "guess"]
    by_method = detection.rename(columns={"masks": "method"})[columns]
    both = masks.merge(by_method, on=["method", "order", "fraction"], how="inner", sort=False)
    rows = [
        (*setting, *_conclusion(block.to_dict("records")))
        for setting, block in both.groupby(["method", "order", "imputer"], sort=False)
    ]
    return pd.DataFrame(rows, columns=CONCLUSION_COLUMNS)


def _conclusion(rows: Sequence[Mapping[Any, Any]]) -> tuple[str, str, float]:
    worst = max(rows, key=lambda row: (leak(row), row["accuracy"]))
    value = leak(worst)
    conclusion = "leak-free" if value < LITTLE else "leaks a little" if value < MUCH else "leaks"
    accuracy = f"{worst['accuracy']:.0%} [{worst['low']:.0%}, {worst['high']:.0%}]"
    text = (
        f"at {worst['fraction']:.0%} removed the masks alone predict the class with accuracy {accuracy}, "
        f"chance is {worst['chance']:.0%}"
    )
    largest = max(_largest_leak(row) for row in rows)
    doubt = f"; a leak of up to {largest:.0%} is not excluded: use more images" if largest >= MUCH > value else ""
    if worst["low"] <= worst["chance"]:
        return conclusion, f"{text}: not clearly more{doubt}", value
    bits = f"{worst['bits']:.2f} of {worst['class_bits']:.2f} bits" if worst["class_bits"] else "nothing"
    detected = f"{detectability(worst):.0%} of the mask is detectable"
    return conclusion, f"{text}: {bits}; {detected}: {value:.1%} of the class information leaks{doubt}", value


def leak(row: Mapping[Any, Any]) -> float:
    """The proven share of the class entropy that the masks carry, times the share of the mask that is detectable."""
    if row["low"] <= row["chance"] or not row["class_bits"]:
        return 0.0
    return float(row["bits"] / row["class_bits"] * detectability(row))


def _largest_leak(row: Mapping[Any, Any]) -> float:
    """The leak at the upper end of the accuracy's interval."""
    return float(row["bits_high"] / row["class_bits"] * detectability(row)) if row["class_bits"] else 0.0


def detectability(row: Mapping[Any, Any]) -> float:
    """The relative reduction of the guessing error by the better of mask detector and trivial inverse.

    >>> detectability({"error": 0.2, "inverse": 0.05, "guess": 0.5})
    0.9
    >>> detectability({"error": 0.6, "inverse": float("nan"), "guess": 0.5})
    0.0
    """
    error = float(np.nanmin([row["error"], row["inverse"]]))
    return max(0.0, 1 - error / row["guess"]) if row["guess"] else 0.0
