"""Which classes suffer: the accuracy that removal costs, class by class."""

import numpy as np
import pandas as pd

from roadworthy.statistics.curves import PointPredictions, by_fraction, sheets
from roadworthy.statistics.intervals import bounded_interval
from roadworthy.statistics.scores import aopc

_COLUMNS = ["method", "order", "imputer", "evaluator", "label", "images", "plain", "drop", "low", "high"]


def per_class(predictions: PointPredictions) -> pd.DataFrame:
    """One row per curve and class of the images.

    method, order, imputer, evaluator: the curve · label, images: the class and how many it has · plain: accuracy before
    anything is removed · drop: mean over the fractions above 0 of the accuracy lost (aopc of these images; MoRF:
    higher is better, LeRF: lower) · low, high: its 95 % interval over images and seeds, NaN from one image.
    """
    rows = []
    for setting, sheet in sheets(predictions).items():
        labels = next(iter(predictions.values())).labels
        members = {int(label): np.flatnonzero(labels == label) for label in np.unique(labels)}
        for method, values in sheet.values.items():
            curve = by_fraction(setting.evaluator, values)
            lost = aopc(curve, sheet.fractions)
            for label, those in members.items():
                drops = lost[:, those]
                curve_of = (method, setting.order, setting.imputer, setting.evaluator)
                ends = bounded_interval(drops, (-1.0, 1.0))
                rows.append((*curve_of, label, len(those), curve[0][:, those].mean(), drops.mean(), *ends))
    return pd.DataFrame(rows, columns=_COLUMNS)
