"""Accuracy lost to removal, class by class."""

import numpy as np
import pandas as pd

from roadworthy.statistics.curves import CURVE_COLUMNS, PointPredictions, by_fraction, curve_coordinates, curve_sets
from roadworthy.statistics.intervals import CONFIDENCE, bounded_interval
from roadworthy.statistics.scores import aopc


def per_class(predictions: PointPredictions, confidence: float = CONFIDENCE) -> pd.DataFrame:
    """One row per curve and class.

    method, order, imputer, evaluator, model, units: the curve · label, images: the class and its number of images ·
    plain: accuracy before removal · drop: accuracy lost, averaged over the fractions above 0 (the AOPC of these images;
    MoRF: higher is better, LeRF: lower is better) · low, high: its interval over images and seeds, NaN for a single
    image.
    """
    rows = []
    for setting, curve_set in curve_sets(predictions).items():
        labels = next(iter(predictions.values())).labels
        members = {int(label): np.flatnonzero(labels == label) for label in np.unique(labels)}
        for method, values in curve_set.values.items():
            curve = by_fraction(setting.evaluator, values)
            lost = aopc(curve, curve_set.fractions)
            for label, images in members.items():
                drops = lost[:, images]
                measures = (len(images), curve[0][:, images].mean(), drops.mean())
                interval = bounded_interval(drops, (-1.0, 1.0), confidence)
                rows.append((*curve_coordinates(method, setting), label, *measures, *interval))
    return pd.DataFrame(rows, columns=[*CURVE_COLUMNS, "label", "images", "plain", "drop", "low", "high"])
