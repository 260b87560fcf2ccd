"""Imputers side by side: error on removed pixels, whether imputed pixels can be detected, time."""

from collections.abc import Callable, Mapping, Sequence
from itertools import product

import pandas as pd

from roadworthy.audit.mask_detection import detect, train_mask_detector, train_test_images
from roadworthy.audit.tables import DetectionSetting, detection_table
from roadworthy.core.masks import MASKS, random_removal
from roadworthy.core.random import Key
from roadworthy.core.types import Dataset, Imputer
from roadworthy.evaluation.quality import imputation_quality


def compare_imputers(
    imputers: Mapping[str, Imputer],
    data: Dataset,
    fractions: Sequence[float],
    key: Key = Key(0),  # noqa: B008  a frozen value
    advance: Callable[[int], object] = lambda steps: None,
) -> pd.DataFrame:
    """A row per imputer, kind of mask and fraction.

    mse: of removed pixels, mean over images · auc, error: of a detector of imputed pixels, on images it never saw
    (docs/audit.md) · guess: the error of the best constant answer · milliseconds: per image · images.
    """
    rows = []
    for row in imputation_quality(imputers, data, fractions, key):
        rows.append(row)
        advance(1)
    train, tested, _ = train_test_images(data, key)
    found = {}
    for name, imputer in imputers.items():
        network = train_mask_detector(imputer, train, key.fold("predictor"))
        for masks, fraction in product(MASKS, fractions):
            removed = random_removal(tested, masks, fraction, key.fold("predictor", "test"))
            found[DetectionSetting(name, masks, "", fraction)] = detect(network, imputer, tested, removed, key)
        advance(1)
    detected = detection_table(found)[["imputer", "masks", "fraction", "auc", "error", "guess"]]
    table = pd.DataFrame(rows).merge(detected, on=["imputer", "masks", "fraction"])
    table["milliseconds"] = 1000 * table["seconds"]
    return table[["imputer", "masks", "fraction", "mse", "auc", "error", "guess", "milliseconds", "images"]]
