"""The plain accuracy: what an evaluator gets right before any pixel is removed."""

import numpy as np
import pandas as pd

from roadworthy.statistics.betting import betting_interval
from roadworthy.statistics.curves import PER_IMAGE_NOISE, PointPredictions
from roadworthy.statistics.early_stopping import StoppingRule
from roadworthy.statistics.intervals import CONFIDENCE, Array, share_interval
from roadworthy.statistics.scores import BlockKey


def plain_accuracy(
    predictions: PointPredictions, confidence: float = CONFIDENCE, stopping: StoppingRule | None = None
) -> pd.DataFrame:
    """One row per block.

    evaluator, imputer, model, units: the block · images: evaluated · accuracy: before removal · low, high: its interval
    (Wilson, or valid at any number of images after early stopping).
    """
    rows = []
    for key, hits in plain_hits(predictions).items():
        interval = (
            betting_interval(hits.mean(axis=0), (0.0, 1.0), 1 - stopping.confidence)
            if stopping
            else share_interval(hits, confidence)
        )
        rows.append((*key, hits.shape[-1], hits.mean(), *interval))
    return pd.DataFrame(rows, columns=[*BlockKey._fields, "images", "accuracy", "low", "high"])


def plain_hits(predictions: PointPredictions) -> dict[BlockKey, Array]:
    """Hits `(seeds, images)` before removal. They depend on no method and no order, so those of any one will do."""
    by_seed: dict[BlockKey, dict[int, Array]] = {}
    for point, each in predictions.items():
        if point.fraction == 0:
            key = BlockKey(point.evaluator, point.imputer, point.model, point.units)
            by_seed.setdefault(key, {}).setdefault(point.seed, each.correct.astype(np.float64))
    hits = {key: np.stack(list(seeds.values())) for key, seeds in by_seed.items()}
    return {
        key: runs.mean(axis=0, keepdims=True) if key.evaluator in PER_IMAGE_NOISE else runs
        for key, runs in hits.items()
    }
