"""Curves from per-image predictions: one complete grid per setting, then means over images with intervals."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from roadworthy.core.errors import InputError, ShapeError
from roadworthy.core.results import Point, Predictions
from roadworthy.statistics.intervals import CONFIDENCE, Array, bounded_interval, share_interval

Value = Literal["accuracy", "probability"]
PointPredictions = Mapping[Point, Predictions]
CURVE_COLUMNS = ("method", "order", "imputer", "evaluator", "model", "units")
"""the fields of a Point that identify its curve"""
PER_IMAGE_NOISE = ("no-retrain",)
"""Evaluators whose randomness is independent for each image. The variance between images already includes it, so seeds
are averaged and one seed is enough. An evaluator that trains has a seed effect that all images share."""

_VALUES: dict[str, Callable[[Predictions], NDArray[Any]]] = {
    "accuracy": lambda predictions: predictions.correct,
    "probability": lambda predictions: predictions.probability,
}


class Setting(NamedTuple):
    """What two curves must share to be compared point by point: everything but the method."""

    evaluator: str
    order: str
    imputer: str
    model: str = Point._field_defaults["model"]
    units: str = Point._field_defaults["units"]

    def __str__(self) -> str:
        """`evaluator · order · imputer`, then the model and the units unless they are the default."""
        extra = [
            getattr(self, name) for name, default in self._field_defaults.items() if getattr(self, name) != default
        ]
        return " · ".join([self.evaluator, self.order, self.imputer, *extra])

    def point(self, method: str, fraction: float, seed: int) -> Point:
        return Point(method, self.order, self.imputer, self.evaluator, fraction, seed, self.model, self.units)


def setting_of(point: Point) -> Setting:
    return Setting(point.evaluator, point.order, point.imputer, point.model, point.units)


@dataclass(frozen=True, eq=False)
class CurveSet:
    """The curves of one setting on one grid of seeds and fractions. Methods that were not evaluated are absent."""

    fractions: tuple[float, ...]
    seeds: tuple[int, ...]
    values: Mapping[str, NDArray[np.float32]]
    """method to per-image values `(seeds, fractions, images)`"""


def curve_sets(predictions: PointPredictions, value: Value = "accuracy") -> dict[Setting, CurveSet]:
    """The per-image values of every method, by setting. An incomplete curve is an error."""
    if value not in _VALUES:
        raise InputError(f"value={value!r}: choose 'accuracy' or 'probability'")
    check_images(predictions)
    grids: dict[Setting, dict[str, set[tuple[float, int]]]] = {}
    for point in predictions:
        methods = grids.setdefault(setting_of(point), {})
        methods.setdefault(point.method, set()).add((point.fraction, point.seed))
    return {setting: _curve_set(predictions, setting, methods, value) for setting, methods in grids.items()}


def _curve_set(
    predictions: PointPredictions, setting: Setting, methods: Mapping[str, set[tuple[float, int]]], value: Value
) -> CurveSet:
    fractions, seeds = (tuple(sorted(set(axis))) for axis in zip(*set().union(*methods.values()), strict=True))
    for method, evaluated in methods.items():
        if missing := sorted(set(product(fractions, seeds)) - evaluated):
            fraction, seed = missing[0]
            raise ShapeError(
                f"{method} has no predictions at fraction {fraction}, seed {seed} ({setting}), where other methods do: "
                "evaluate the missing points, or leave the method out of this setting"
            )
    values = {method: _curve(predictions, setting, method, fractions, seeds, value) for method in methods}
    return CurveSet(fractions, seeds, values)


def _curve(
    predictions: PointPredictions,
    setting: Setting,
    method: str,
    fractions: tuple[float, ...],
    seeds: tuple[int, ...],
    value: Value,
) -> NDArray[np.float32]:
    rows = [
        [_VALUES[value](predictions[setting.point(method, fraction, seed)]) for fraction in fractions] for seed in seeds
    ]
    curve = np.asarray(rows, dtype=np.float32)
    if not np.isfinite(curve).all():
        raise InputError(f"{method} ({setting}): a {value} is NaN or infinite: check the predictions of this method")
    return curve


def check_images(predictions: PointPredictions) -> None:
    """Raise unless all predictions are about the same images in the same order, as paired statistics require."""
    if not predictions:
        raise InputError("there are no predictions: evaluate at least one method")
    first_point, first = next(iter(predictions.items()))
    if len(first) == 0:
        raise InputError(f"{first_point.method} was evaluated on no images: give at least one")
    for point, others in predictions.items():
        if others.ids is not first.ids and not np.array_equal(others.ids, first.ids):
            raise InputError(
                f"{point.method} ({point.order} · {point.imputer}, fraction {point.fraction}) and {first_point.method} "
                f"were evaluated on different images ({_some(others.ids)}; {_some(first.ids)}): "
                "evaluate all methods on the same ids, in the same order"
            )


def _some(ids: NDArray[np.int64], most: int = 3) -> str:
    return f"{len(ids)} ids: {', '.join(map(str, ids[:most]))}{' …' if len(ids) > most else ''}"


def curves(predictions: PointPredictions, confidence: float = CONFIDENCE) -> pd.DataFrame:
    """One row per point of a curve, averaged over seeds.

    method, order, imputer, evaluator, model, units, fraction: the point · accuracy, probability: means over images and
    seeds · low, high: interval of the accuracy (Wilson, for one seed) · probability_low, probability_high: interval of
    the probability. MoRF: lower is better; LeRF: higher is better.
    """
    accuracy, probability = curve_sets(predictions, "accuracy"), curve_sets(predictions, "probability")
    rows = [
        (
            *curve_coordinates(method, setting),
            *(fraction, hits.mean(), probabilities.mean()),
            *share_interval(hits, confidence),
            *bounded_interval(probabilities, (0.0, 1.0), confidence),
        )
        for setting, curve_set in accuracy.items()
        for method, values in curve_set.values.items()
        for fraction, hits, probabilities in zip(
            curve_set.fractions,
            by_fraction(setting.evaluator, values),
            by_fraction(setting.evaluator, probability[setting].values[method]),
            strict=True,
        )
    ]
    measures = ["fraction", "accuracy", "probability", "low", "high", "probability_low", "probability_high"]
    return pd.DataFrame(rows, columns=[*CURVE_COLUMNS, *measures])


def curve_coordinates(method: str, setting: Setting) -> tuple[str, ...]:
    """The values of `CURVE_COLUMNS`."""
    return (method, setting.order, setting.imputer, setting.evaluator, setting.model, setting.units)


def by_fraction(evaluator: str, values: NDArray[np.float32]) -> Array:
    """Values as `(fractions, seeds, images)`, averaged over seeds for the evaluators in `PER_IMAGE_NOISE`."""
    runs = values.swapaxes(0, 1).astype(np.float64)
    several = runs.shape[1] > 1  # the mean of one seed would be a copy
    return runs.mean(axis=1, keepdims=True) if several and evaluator in PER_IMAGE_NOISE else runs


def per_image(predictions: PointPredictions) -> pd.DataFrame:
    """Every prediction: one row per point and image.

    method, order, imputer, evaluator, model, units, fraction, seed: the point · id, label: the image · predicted: the
    predicted class · probability: of the target class.
    """
    coordinates = (*CURVE_COLUMNS, "fraction", "seed")
    frames = [
        pd.DataFrame(
            {
                **{name: getattr(point, name) for name in coordinates},
                "id": of_images.ids,
                "label": of_images.labels,
                "predicted": of_images.predicted,
                "probability": of_images.probability,
            }
        )
        for point, of_images in predictions.items()
    ]
    return pd.concat(frames, ignore_index=True)
