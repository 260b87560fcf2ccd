"""From Verdicts to curves: one checked grid per setting, then means over images with intervals."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from roadworthy.core.errors import InputError, ShapeError
from roadworthy.core.results import Dot, Verdict
from roadworthy.statistics.intervals import Array, bounded_interval, share_interval

Value = Literal["accuracy", "probability"]
Verdicts = Mapping[Dot, Verdict]

_VALUES: dict[str, Callable[[Verdict], NDArray[Any]]] = {
    "accuracy": lambda verdict: verdict.correct,
    "probability": lambda verdict: verdict.probability,
}


PER_IMAGE_NOISE = ("fixed-model",)
"""Judges whose randomness is drawn image by image. The spread over images holds it, so a seed is no sample of its own
there: seeds are averaged, and one is enough. A judge that trains has an effect that all images share."""


class Setting(NamedTuple):
    """Everything about a curve but the method."""

    judge: str
    order: str
    imputer: str

    def __str__(self) -> str:
        return " · ".join(self)


@dataclass(frozen=True, eq=False)
class Sheet:
    """The curves of one setting, all on one grid; a method that was not judged in this setting is not there."""

    fractions: tuple[float, ...]
    seeds: tuple[int, ...]
    values: Mapping[str, NDArray[np.float32]]
    """method to per-image values `(seeds, fractions, images)`"""


def sheets(verdicts: Verdicts, value: Value = "accuracy") -> dict[Setting, Sheet]:
    """Per setting, the per-image values of every method. A curve is whole or absent; a ragged one is an error."""
    if value not in _VALUES:
        raise InputError(f"value={value!r}: choose 'accuracy' or 'probability'")
    check_images(verdicts)
    points: dict[Setting, dict[str, set[tuple[float, int]]]] = {}
    for dot in verdicts:
        methods = points.setdefault(Setting(dot.judge, dot.order, dot.imputer), {})
        methods.setdefault(dot.method, set()).add((dot.fraction, dot.seed))
    return {setting: _sheet(verdicts, setting, methods, value) for setting, methods in points.items()}


def _sheet(verdicts: Verdicts, setting: Setting, methods: Mapping[str, set[tuple[float, int]]], value: Value) -> Sheet:
    every = set().union(*methods.values())
    fractions, seeds = (tuple(sorted(set(axis))) for axis in zip(*every, strict=True))
    for method, there in methods.items():
        if missing := sorted(set(product(fractions, seeds)) - there):
            fraction, seed = missing[0]
            raise ShapeError(
                f"{method} has no verdict at fraction {fraction}, seed {seed} ({setting}), where others have one: "
                "judge the missing dots, or leave the method out of this setting"
            )
    return Sheet(
        fractions, seeds, {method: _curve(verdicts, setting, method, fractions, seeds, value) for method in methods}
    )


def _curve(
    verdicts: Verdicts,
    setting: Setting,
    method: str,
    fractions: tuple[float, ...],
    seeds: tuple[int, ...],
    value: Value,
) -> NDArray[np.float32]:
    judge, order, imputer = setting
    rows = [
        [_VALUES[value](verdicts[Dot(method, order, imputer, judge, fraction, seed)]) for fraction in fractions]
        for seed in seeds
    ]
    curve = np.asarray(rows, dtype=np.float32)
    if not np.isfinite(curve).all():
        raise InputError(f"{method} ({setting}): a {value} is NaN or infinite: check the verdicts of this method")
    return curve


def check_images(verdicts: Verdicts) -> None:
    """All verdicts are about the same images in the same order, or nothing is paired."""
    if not verdicts:
        raise InputError("there are no verdicts: judge at least one method")
    first_dot, first = next(iter(verdicts.items()))
    if len(first) == 0:
        raise InputError(f"{first_dot.method} was judged on no images: give at least one")
    for dot, verdict in verdicts.items():
        if not np.array_equal(verdict.ids, first.ids):
            raise InputError(
                f"{dot.method} ({dot.order} · {dot.imputer}, fraction {dot.fraction}) and {first_dot.method} were "
                f"judged on different images ({_some(verdict.ids)}; {_some(first.ids)}): "
                "judge all methods on the same ids, in the same order"
            )


def _some(ids: NDArray[np.int64], most: int = 3) -> str:
    return f"{len(ids)} ids: {', '.join(map(str, ids[:most]))}{' …' if len(ids) > most else ''}"


def curves(verdicts: Verdicts) -> pd.DataFrame:
    """One row per point of a curve, seeds averaged.

    method, order, imputer, judge, fraction: the point · accuracy, probability: means over images and seeds ·
    low, high: the 95 % interval of the accuracy (Wilson's, for one seed) · probability_low, probability_high: of the
    probability. MoRF: lower is better; LeRF: higher is better.
    """
    accuracy, probability = sheets(verdicts, "accuracy"), sheets(verdicts, "probability")
    rows = [
        (
            *(method, setting.order, setting.imputer, setting.judge, fraction, hits.mean(), chances.mean()),
            *share_interval(hits),
            *bounded_interval(chances, (0.0, 1.0)),
        )
        for setting, sheet in accuracy.items()
        for method, values in sheet.values.items()
        for fraction, hits, chances in zip(
            sheet.fractions,
            by_fraction(setting.judge, values),
            by_fraction(setting.judge, probability[setting].values[method]),
            strict=True,
        )
    ]
    names = ["method", "order", "imputer", "judge", "fraction", "accuracy", "probability"]
    return pd.DataFrame(rows, columns=[*names, "low", "high", "probability_low", "probability_high"])


def by_fraction(judge: str, values: NDArray[np.float32]) -> Array:
    """`(fractions, seeds, images)`, seeds averaged where they are no sample of their own."""
    runs = values.swapaxes(0, 1).astype(np.float64)
    return runs.mean(axis=1, keepdims=True) if judge in PER_IMAGE_NOISE else runs


def per_image(verdicts: Verdicts) -> pd.DataFrame:
    """Every judgement: one row per dot and image.

    method, order, imputer, judge, fraction, seed: the dot · id, label: the image · predicted: the class that the judge
    said · probability: of the target class.
    """
    frames = [
        pd.DataFrame(
            {
                **dot._asdict(),
                "id": verdict.ids,
                "label": verdict.labels,
                "predicted": verdict.predicted,
                "probability": verdict.probability,
            }
        )
        for dot, verdict in verdicts.items()
    ]
    return pd.concat(frames, ignore_index=True)
