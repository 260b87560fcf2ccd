"""From PointPredictions to curves: one checked grid per setting, then means over images with intervals."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from roadworthy.core.errors import InputError, ShapeError
from roadworthy.core.results import Point, Predictions
from roadworthy.statistics.intervals import Array, bounded_interval, share_interval

Value = Literal["accuracy", "probability"]
PointPredictions = Mapping[Point, Predictions]

_VALUES: dict[str, Callable[[Predictions], NDArray[Any]]] = {
    "accuracy": lambda prediction: prediction.correct,
    "probability": lambda prediction: prediction.probability,
}


PER_IMAGE_NOISE = ("no-retrain",)
"""Judges whose randomness is drawn image by image. The spread over images holds it, so a seed is no sample of its own
there: seeds are averaged, and one is enough. A evaluator that trains has an effect that all images share."""


class Setting(NamedTuple):
    """Everything about a curve but the method."""

    evaluator: str
    order: str
    imputer: str

    def __str__(self) -> str:
        return " · ".join(self)


@dataclass(frozen=True, eq=False)
class Sheet:
    """The curves of one setting, all on one grid; a method that was not evaluated in this setting is not there."""

    fractions: tuple[float, ...]
    seeds: tuple[int, ...]
    values: Mapping[str, NDArray[np.float32]]
    """method to per-image values `(seeds, fractions, images)`"""


def sheets(predictions: PointPredictions, value: Value = "accuracy") -> dict[Setting, Sheet]:
    """Per setting, the per-image values of every method. A curve is whole or absent; a ragged one is an error."""
    if value not in _VALUES:
        raise InputError(f"value={value!r}: choose 'accuracy' or 'probability'")
    check_images(predictions)
    points: dict[Setting, dict[str, set[tuple[float, int]]]] = {}
    for point in predictions:
        methods = points.setdefault(Setting(point.evaluator, point.order, point.imputer), {})
        methods.setdefault(point.method, set()).add((point.fraction, point.seed))
    return {setting: _sheet(predictions, setting, methods, value) for setting, methods in points.items()}


def _sheet(
    predictions: PointPredictions, setting: Setting, methods: Mapping[str, set[tuple[float, int]]], value: Value
) -> Sheet:
    every = set().union(*methods.values())
    fractions, seeds = (tuple(sorted(set(axis))) for axis in zip(*every, strict=True))
    for method, there in methods.items():
        if missing := sorted(set(product(fractions, seeds)) - there):
            fraction, seed = missing[0]
            raise ShapeError(
                f"{method} has no prediction at fraction {fraction}, seed {seed} ({setting}), where others have one: "
                "evaluator the missing points, or leave the method out of this setting"
            )
    return Sheet(
        fractions, seeds, {method: _curve(predictions, setting, method, fractions, seeds, value) for method in methods}
    )


def _curve(
    predictions: PointPredictions,
    setting: Setting,
    method: str,
    fractions: tuple[float, ...],
    seeds: tuple[int, ...],
    value: Value,
) -> NDArray[np.float32]:
    evaluator, order, imputer = setting
    rows = [
        [
            _VALUES[value](predictions[Point(method, order, imputer, evaluator, fraction, seed)])
            for fraction in fractions
        ]
        for seed in seeds
    ]
    curve = np.asarray(rows, dtype=np.float32)
    if not np.isfinite(curve).all():
        raise InputError(f"{method} ({setting}): a {value} is NaN or infinite: check the predictions of this method")
    return curve


def check_images(predictions: PointPredictions) -> None:
    """All predictions are about the same images in the same order, or nothing is paired."""
    if not predictions:
        raise InputError("there are no predictions: evaluator at least one method")
    first_point, first = next(iter(predictions.items()))
    if len(first) == 0:
        raise InputError(f"{first_point.method} was evaluated on no images: give at least one")
    for point, prediction in predictions.items():
        if not np.array_equal(prediction.ids, first.ids):
            raise InputError(
                f"{point.method} ({point.order} · {point.imputer}, fraction {point.fraction}) and {first_point.method} were "
                f"evaluated on different images ({_some(prediction.ids)}; {_some(first.ids)}): "
                "evaluator all methods on the same ids, in the same order"
            )


def _some(ids: NDArray[np.int64], most: int = 3) -> str:
    return f"{len(ids)} ids: {', '.join(map(str, ids[:most]))}{' …' if len(ids) > most else ''}"


def curves(predictions: PointPredictions) -> pd.DataFrame:
    """One row per point of a curve, seeds averaged.

    method, order, imputer, evaluator, fraction: the point · accuracy, probability: means over images and seeds ·
    low, high: the 95 % interval of the accuracy (Wilson's, for one seed) · probability_low, probability_high: of the
    probability. MoRF: lower is better; LeRF: higher is better.
    """
    accuracy, probability = sheets(predictions, "accuracy"), sheets(predictions, "probability")
    rows = [
        (
            *(method, setting.order, setting.imputer, setting.evaluator, fraction, hits.mean(), chances.mean()),
            *share_interval(hits),
            *bounded_interval(chances, (0.0, 1.0)),
        )
        for setting, sheet in accuracy.items()
        for method, values in sheet.values.items()
        for fraction, hits, chances in zip(
            sheet.fractions,
            by_fraction(setting.evaluator, values),
            by_fraction(setting.evaluator, probability[setting].values[method]),
            strict=True,
        )
    ]
    names = ["method", "order", "imputer", "evaluator", "fraction", "accuracy", "probability"]
    return pd.DataFrame(rows, columns=[*names, "low", "high", "probability_low", "probability_high"])


def by_fraction(evaluator: str, values: NDArray[np.float32]) -> Array:
    """`(fractions, seeds, images)`, seeds averaged where they are no sample of their own."""
    runs = values.swapaxes(0, 1).astype(np.float64)
    return runs.mean(axis=1, keepdims=True) if evaluator in PER_IMAGE_NOISE else runs


def per_image(predictions: PointPredictions) -> pd.DataFrame:
    """Every prediction: one row per point and image.

    method, order, imputer, evaluator, fraction, seed: the point · id, label: the image · predicted: the class that the evaluator
    said · probability: of the target class.
    """
    frames = [
        pd.DataFrame(
            {
                **point._asdict(),
                "id": prediction.ids,
                "label": prediction.labels,
                "predicted": prediction.predicted,
                "probability": prediction.probability,
            }
        )
        for point, prediction in predictions.items()
    ]
    return pd.concat(frames, ignore_index=True)
