"""Where removing pixels makes the accuracy higher than it was before."""

from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from roadworthy.statistics.betting import betting_interval
from roadworthy.statistics.curves import PointPredictions, by_fraction, curve_sets
from roadworthy.statistics.early_stopping import StoppingRule
from roadworthy.statistics.intervals import CONFIDENCE, Array, unanimous_interval, variance_of_mean
from roadworthy.statistics.scores import BlockKey


class RaisedAccuracy(NamedTuple):
    """The point of a block at which the accuracy is highest above the plain one."""

    key: BlockKey
    method: str
    order: str
    fraction: float
    accuracy: float
    plain: float
    """accuracy before removal"""
    methods: tuple[str, ...]
    """all of the block with such points"""

    @property
    def gain(self) -> float:
        return self.accuracy - self.plain


def raised_accuracies(
    predictions: PointPredictions,
    controls: Collection[str] = (),
    confidence: float = CONFIDENCE,
    stopping: StoppingRule | None = None,
) -> list[RaisedAccuracy]:
    """Per block, the worst point whose accuracy is clearly above that before removal; controls are not looked at.

    The two are compared image by image, at a confidence that holds for all points together (Bonferroni).
    """
    curves = {
        (setting, method): (curve_set.fractions, by_fraction(setting.evaluator, values))
        for setting, curve_set in curve_sets(predictions).items()
        for method, values in curve_set.values.items()
        if method not in controls
    }
    points = sum(len(fractions) - 1 for fractions, _ in curves.values())
    raised: dict[BlockKey, list[RaisedAccuracy]] = {}
    for (setting, method), (fractions, hits) in curves.items():
        key = BlockKey(setting.evaluator, setting.imputer, setting.model, setting.units)
        for fraction, at_fraction in zip(fractions[1:], hits[1:], strict=True):
            gain = at_fraction - hits[0]
            # Most points lie below the plain accuracy: only the others are worth an interval.
            if gain.mean() > 0 and _lower_end(gain, (1 - confidence) / points, stopping) > 0:
                accuracy, plain = float(at_fraction.mean()), float(hits[0].mean())
                point = RaisedAccuracy(key, method, setting.order, fraction, accuracy, plain, ())
                raised.setdefault(key, []).append(point)
    return [
        max(found, key=lambda point: point.gain)._replace(methods=tuple(dict.fromkeys(p.method for p in found)))
        for found in raised.values()
    ]


def _lower_end(gain: Array, error: float, stopping: StoppingRule | None) -> float:
    """Lower bound of the mean gain `(seeds, images)`, in [−1, 1], that is too high with probability `error`."""
    if stopping:
        return betting_interval(gain.mean(axis=0), (-1.0, 1.0), 2 * error)[0]
    variance = variance_of_mean(gain)
    if variance.error == 0:
        return unanimous_interval(float(gain.mean()), gain.shape[-1], (-1.0, 1.0), 2 * error)[0]
    return float(np.nan_to_num(gain.mean() - variance.half_width(error), nan=-1.0))
