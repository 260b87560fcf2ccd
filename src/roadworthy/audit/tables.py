"""The audit's tables: class information in the masks, leakage through imputation, detection, geometry, conclusions.

Information is only bounded from below: "at least so many bits", or "none found with n masks", which proves nothing.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from roadworthy.audit.debiasing import GEOMETRY_COLUMNS, gamma_table
from roadworthy.audit.geometry import Geometry
from roadworthy.audit.information import bits_at_least, bits_if_optimal, chance, entropy
from roadworthy.audit.reader import Reading
from roadworthy.core.results import MaskDetection, Predictions
from roadworthy.statistics.intervals import CONFIDENCE, bounded_interval, share_interval

MASK_COLUMNS = [
    "method", "order", "fraction", "accuracy", "low", "high", "chance", "bits", "bits_low", "bits_high",
    "bits_if_optimal", "images", "class_bits", "note", "quarter", "half", "rising", "conclusion",
]  # fmt: skip
LEAKAGE_COLUMNS = [
    "method", "order", "imputer", "fraction", "accuracy", "low", "high", "chance", "bits", "bits_low", "bits_high",
    "p", "images", "class_bits", "quarter", "half", "rising",
]  # fmt: skip
DETECTION_COLUMNS = [
    "imputer", "masks", "fraction", "error", "auc", "low", "high", "guess", "order", "inverse", "auc_low", "auc_high",
    "note",
]  # fmt: skip
CONCLUSION_COLUMNS = [
    "method", "order", "imputer", "conclusion", "why", "found", "bits", "low", "high", "images", "fraction", "p",
    "quarter", "half", "accuracy", "rising",
]  # fmt: skip


class LeakageSetting(NamedTuple):
    """Whose masks were imputed into other images, and how."""

    method: str
    order: str
    imputer: str
    fraction: float


class DetectionSetting(NamedTuple):
    """Where imputed pixels are detected: `masks` is "scatter", "blobs" or a method; `order` is "" for random masks."""

    imputer: str
    masks: str
    order: str
    fraction: float


def audit_tables(
    mask_predictions: Mapping[tuple[str, float], Sequence[Predictions]],
    readings: Mapping[LeakageSetting, Reading],
    detections: Mapping[DetectionSetting, MaskDetection],
    geometries: Sequence[Geometry],
    orders: Sequence[str],
    fractions: Sequence[float],
) -> dict[str, pd.DataFrame]:
    """The tables masks, leakage, detection, geometry and conclusions, by name."""
    gammas = [gamma_table(geometry) for geometry in geometries]
    geometry = pd.concat(gammas) if gammas else pd.DataFrame(columns=list(GEOMETRY_COLUMNS))
    return {
        "masks": mask_table(mask_predictions, orders, fractions),
        "leakage": leakage_table(readings),
        "detection": detection_table(detections),
        "geometry": geometry.reset_index(drop=True),
        "conclusions": conclusion_table(readings),
    }


def most_relevant_share(order: str, fraction: float) -> float:
    """The fraction at which MoRF has the same mask, or its complement: LeRF removes at p what MoRF keeps at 1 − p.

    >>> most_relevant_share("morf", 0.1), most_relevant_share("lerf", 0.9)
    (0.1, 0.1)
    """
    return fraction if order == "morf" else round(1 - fraction, 12)


# ── masks alone ──────────────────────────────────────────────────────────────────────────────────────────────────────


def mask_table(
    predictions: Mapping[tuple[str, float], Sequence[Predictions]], orders: Sequence[str], fractions: Sequence[float]
) -> pd.DataFrame:
    """One row per method, order and fraction; `predictions` of the mask classifier by method and `most_relevant_share`,
    trained on all masks, and, if there is a learning curve, before it on a quarter and on half.

    accuracy, low, high: of the mask classifier, cross-validated · chance: the share of the most frequent class · bits,
    bits_low, bits_high: class information in the masks that the accuracy and its interval prove · bits_if_optimal: at
    most this much, if no classifier could do better · class_bits: entropy of the class · quarter, half: the accuracy
    after training on fewer masks, NaN if not measured · rising: whether it still rises clearly · conclusion: in words.
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


def _mask_row(curve: Sequence[Predictions]) -> tuple[Any, ...]:
    last = curve[-1]
    row = _row(last.labels, np.stack([predictions.correct for predictions in curve]))
    constant = len(np.unique(last.predicted)) == 1
    found = row.bits_low > 0
    conclusion = at_least(row.bits, row.bits_low, row.bits_high) if found else none_found(row.images)
    return (
        *(row.accuracy, row.low, row.high, row.chance, row.bits, row.bits_low, row.bits_high),
        *(bits_if_optimal(row.accuracy, _shares(last.labels)), row.images, row.class_bits),
        "the same prediction for every mask" if constant else "",
        *(row.quarter, row.half, row.rising),
        conclusion + ("; still rising" if found and row.rising else ""),
    )


class _Row(NamedTuple):
    accuracy: float
    low: float
    high: float
    chance: float
    bits: float
    bits_low: float
    bits_high: float
    images: int
    class_bits: float
    quarter: float
    half: float
    rising: bool


def _row(labels: NDArray[np.int64], correct: NDArray[np.bool_], confidence: float = CONFIDENCE) -> _Row:
    """The bits that held-out predictions prove; `correct` has one row, or those of a learning curve, all masks last."""
    shares, hits = _shares(labels), correct[-1]
    accuracy, (low, high) = float(hits.mean()), share_interval(hits[None].astype(np.float64), confidence)
    bits, bits_low, bits_high = (bits_at_least(value, shares) for value in (accuracy, low, high))
    quarter, half = (float(fewer.mean()) for fewer in correct[:-1]) if len(correct) == 3 else (np.nan, np.nan)
    rising = len(correct) == 3 and rises(correct[1], hits)
    known = (accuracy, low, high, chance(shares), bits, bits_low, bits_high)
    return _Row(*known, len(labels), entropy(shares), quarter, half, rising)


def _shares(labels: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.asarray(np.unique(labels, return_counts=True)[1] / len(labels))


def rises(half: NDArray[np.bool_], whole: NDArray[np.bool_]) -> bool:
    """Whether twice as many training masks clearly predict more: the exact sign test of the same test masks, at 5 %.

    >>> five, none = np.ones(5, dtype=bool), np.zeros(5, dtype=bool)
    >>> rises(none, five), rises(none[:4], five[:4])  # p = 1/32, 1/16
    (True, False)
    """
    gained, lost = int((whole & ~half).sum()), int((half & ~whole).sum())
    return gained + lost > 0 and float(stats.binomtest(gained, gained + lost, alternative="greater").pvalue) <= 0.05


def at_least(bits: float, low: float, high: float) -> str:
    return f"at least {bits:.2f} bits [{low:.2f}, {high:.2f}]"


def none_found(masks: int) -> str:
    return f"none found with {masks:,} masks"


# ── through the imputation ───────────────────────────────────────────────────────────────────────────────────────────


def leakage_table(readings: Mapping[LeakageSetting, Reading]) -> pd.DataFrame:
    """One row per method, order, imputer and fraction.

    accuracy, low, high: of predicting the class of a mask's own image from another image imputed with it, held out ·
    chance · bits, bits_low, bits_high: what the accuracy and its interval prove · p: share of permutations of labels
    with as many correct predictions, for this fraction alone · images: how many masks · class_bits: class entropy ·
    quarter, half: the accuracy after fitting to fewer masks · rising: whether it still rises clearly.
    """
    rows = []
    for setting, reading in readings.items():
        row = _row(reading.labels, _correct(reading))
        method, order, imputer, fraction = setting
        rows.append((method, order, imputer, fraction, *row[:7], _p_value([reading]), *row[7:]))
    return pd.DataFrame(rows, columns=LEAKAGE_COLUMNS)


def _correct(reading: Reading) -> NDArray[np.bool_]:
    return np.asarray(reading.predicted == reading.labels)


def _p_value(readings: Sequence[Reading]) -> float:
    """Of no information at any fraction: by the largest standardized number of correct predictions (Westfall-Young).

    The labels were permuted alike at all fractions, so the p-value is exact, for one conclusion from all of them.
    """
    largest = np.max([_standardized(reading) for reading in readings], axis=0)
    return float((largest >= largest[0] - 1e-9).mean())


def _standardized(reading: Reading) -> NDArray[np.float64]:
    """Correct predictions with the true labels, first, and with permuted ones; in standard deviations."""
    hits = np.concatenate([[_correct(reading)[-1].sum()], reading.null]).astype(np.float64)
    return np.asarray((hits - hits.mean()) / (hits.std() or 1.0))


def conclusion_table(readings: Mapping[LeakageSetting, Reading]) -> pd.DataFrame:
    """One row per method, order and imputer: was a leak found at any fraction?

    conclusion: "leak found: at least x bits [low, high]" or "none found with n masks" · why: in words · found · bits,
    low, high: at the fraction where most was found; the interval allows for the choice · p: of no leak at any fraction.
    """
    groups: dict[tuple[str, str, str], dict[float, Reading]] = {}
    for setting, reading in readings.items():
        groups.setdefault(setting[:3], {})[setting.fraction] = reading
    rows = [(*setting, *_conclusion(by_fraction)) for setting, by_fraction in groups.items()]
    return pd.DataFrame(rows, columns=CONCLUSION_COLUMNS)


def _conclusion(readings: Mapping[float, Reading]) -> tuple[Any, ...]:
    fraction = max(readings, key=lambda fraction: _standardized(readings[fraction])[0])
    reading, p = readings[fraction], _p_value(list(readings.values()))
    row = _row(reading.labels, _correct(reading), 1 - (1 - CONFIDENCE) / len(readings))
    found = p <= 1 - CONFIDENCE and row.bits_low > 0
    bits = (row.bits, row.bits_low, row.bits_high)
    conclusion = f"leak found: {at_least(*bits)}" if found else none_found(row.images)
    why = _why(row, fraction, found) + (f" (p = {p:.2f})" if not found else "")
    return (
        *(conclusion, why, found, *bits, row.images, fraction, p),
        *(row.quarter, row.half, row.accuracy, row.rising),
    )


def _why(row: _Row, fraction: float, found: bool) -> str:
    accuracy = f"{row.accuracy:.0%} [{row.low:.0%}, {row.high:.0%}], chance is {row.chance:.0%}"
    text = f"at {fraction:.0%} removed, another image imputed with the mask predicts its class with accuracy {accuracy}"
    if not found:
        above = row.low > row.chance
        return f"{text}: " + ("above chance, but not enough to prove any bits" if above else "not clearly more")
    counts = f"{row.images // 4:,}, {row.images // 2:,} and {row.images:,} masks"
    curve = f"with {counts} {row.quarter:.0%}, {row.half:.0%}, {row.accuracy:.0%}"
    return f"{text}; {curve}" + (": still rising, more masks may prove more" if row.rising else "")


# ── detection of imputed pixels ──────────────────────────────────────────────────────────────────────────────────────


def detection_table(detections: Mapping[DetectionSetting, MaskDetection]) -> pd.DataFrame:
    """One row per imputer, kind of masks, order and fraction.

    auc, auc_low, auc_high: of imputed against kept pixels of the same image, with its interval over images; ½ means no
    detection · error, low, high: share of pixels that are misclassified at logit 0, by a detector that does not know
    the fraction (the paper's measure) · guess: the error of the best constant prediction, which knows it · inverse: the
    error of calling every pixel of the imputed color imputed, NaN unless the imputer uses one color · note: where the
    AUC is not clearly above ½.
    """
    rows = []
    for setting, detection in detections.items():
        auc = bounded_interval(detection.auc, (0.0, 1.0))
        inverse = float(detection.trivial_error.mean())
        guess = min(setting.fraction, 1 - setting.fraction)
        detected = auc[0] > 0.5 or inverse < guess
        rows.append(
            (
                *(setting.imputer, setting.masks, setting.fraction),
                *(float(detection.error.mean()), float(detection.auc.mean())),
                *bounded_interval(detection.error, (0.0, 1.0)),
                *(guess, setting.order, inverse, *auc),
                "" if detected else f"not detected in {len(detection.auc):,} images: the AUC is not clearly above 1/2",
            )
        )
    return pd.DataFrame(rows, columns=DETECTION_COLUMNS)
