"""Confidence intervals of agreement, and of its change from one pair of settings to another."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from roadworthy.core.errors import InputError
from roadworthy.statistics.agreement import (
    PAIRINGS,
    Merits,
    agreement_of,
    compared_methods,
    merits_of,
    paired_columns,
)
from roadworthy.statistics.curves import CurveSet, PointPredictions, Setting, Value, curve_sets, setting_of
from roadworthy.statistics.intervals import CONFIDENCE, Array
from roadworthy.statistics.latent_ranks import Measured, drawn_correlations, extreme_is_plausible, mean_rank_correlation

DRAWS = 1000
_CHUNK = 4_000_000
"""multipliers held in memory at a time: 32 MB"""


def agreement_intervals(
    predictions: PointPredictions,
    controls: Sequence[str] = (),
    value: Value = "accuracy",
    confidence: float = CONFIDENCE,
) -> pd.DataFrame:
    """The table of `agreement` with the interval `low`, `high` of its `spearman`.

    What the interval covers is the rank correlation of the true accuracies: those of infinitely many images, and
    training runs. The measured one lies closer to 0, because noise mixes close methods; the interval does not
    (`latent_ranks`). It always contains the measured value. NaN where nothing can be compared or for a single image.
    """
    sides = _sides(predictions, controls, value)
    table = agreement_of({name: side.merits for name, side in sides.by_setting.items()})
    ends = [_interval(row, sides, confidence) for row in table.to_dict("records")]
    return table.assign(low=[low for low, _ in ends], high=[high for _, high in ends])


def agreement_interval(
    predictions: PointPredictions,
    settings: tuple[Setting, Setting],
    pairing: str = "removed",
    controls: Sequence[str] = (),
    value: Value = "accuracy",
    confidence: float = CONFIDENCE,
) -> tuple[float, float, float]:
    """One row of `agreement_intervals`: `spearman`, low, high."""
    (first, second), covariance = _requested(predictions, settings, pairing, controls, value)
    return _pair_interval(first, second, covariance, pairing, confidence)


def agreement_change(
    predictions: PointPredictions,
    before: tuple[Setting, Setting],
    after: tuple[Setting, Setting],
    pairing: str = "removed",
    controls: Sequence[str] = (),
    value: Value = "accuracy",
    confidence: float = CONFIDENCE,
) -> tuple[float, float, float]:
    """By how much `spearman` is higher between the settings `after` than between those of `before`: change, low, high.

    The methods compared are those that all four settings have. The noise of the images is the same for both pairs. The
    interval covers the change of the true rank correlation; it always contains the measured change.
    """
    sides, covariance = _requested(predictions, [*before, *after], pairing, controls, value)
    shared = set.intersection(*(set(side.merits.methods) for side in sides))
    methods = [method for method in sides[0].merits.methods if method in shared]
    compared = [_measured(a, b, covariance, methods, pairing) for a, b in (sides[:2], sides[2:])]
    estimates = [_estimate(measured) for measured in compared]
    change = estimates[1] - estimates[0]
    # Separate generators: the true merits of the two pairs are not assumed to be related, their noise is the same.
    # A pair compared with itself has no change.
    seeds = (0, 0 if tuple(before) == tuple(after) else 1)
    first, second = (_draws(measured, seed) for seed, measured in zip(seeds, compared, strict=True))
    return change, *_ends(second - first, change, 2.0, confidence)


@dataclass(frozen=True, eq=False)
class _Side:
    """One setting: its merits, and how they vary between images and between training runs."""

    merits: Merits
    images: int
    rows: NDArray[np.intp]
    """of `(methods, fractions)` in the covariance of all settings"""
    run_variance: Array
    """of the merits, from training runs: `(methods, fractions)`; 0 for a single run"""
    noise: Array
    """draws of both together: `(draws, methods, fractions)`"""


class _Sides(NamedTuple):
    by_setting: dict[Setting, _Side]
    covariance: Array
    """of the merits of all settings, from images, which all of them share: computed once for all pairs"""


def _sides(predictions: PointPredictions, controls: Sequence[str], value: Value) -> _Sides:
    methods = compared_methods(predictions, controls)
    curves = curve_sets(predictions, value)
    merits = merits_of(curves, methods)
    deviations = np.concatenate([_deviations(name, curves[name], each.methods) for name, each in merits.items()])
    images, variances = deviations.shape[-1], [_run_variance(each) for each in merits.values()]
    ends = np.cumsum([each.size for each in variances])[:-1]
    rows = np.split(np.arange(len(deviations)), ends)
    noises = _noises(deviations, variances)
    sides = {
        name: _Side(each, images, row.reshape(variance.shape), variance, noise)
        for (name, each), row, variance, noise in zip(merits.items(), rows, variances, noises, strict=True)
    }
    return _Sides(sides, deviations @ deviations.T / (images * max(images - 1, 1)))


def _requested(
    predictions: PointPredictions, settings: Sequence[Setting], pairing: str, controls: Sequence[str], value: Value
) -> tuple[list[_Side], Array]:
    if pairing not in PAIRINGS:
        raise InputError(f"pairing={pairing!r}: choose 'removed' or 'kept'")
    found = {setting_of(point) for point in predictions}
    if missing := [setting for setting in settings if setting not in found]:
        raise InputError(f"no predictions of {missing[0]}: choose from {', '.join(map(str, sorted(found)))}")
    needed = {point: each for point, each in predictions.items() if setting_of(point) in settings}
    sides = _sides(needed, controls, value)
    return [sides.by_setting[setting] for setting in settings], sides.covariance


def _deviations(setting: Setting, curve_set: CurveSet, methods: Sequence[str]) -> Array:
    """Of the images from the merits, averaged over runs: `(methods · fractions, images)`."""
    shape = (len(methods) * len(curve_set.fractions), -1)
    images = np.reshape([curve_set.values[method].mean(axis=0) for method in methods], shape).astype(np.float64)
    return np.asarray((-1.0 if setting.order == "morf" else 1.0) * (images - images.mean(axis=-1, keepdims=True)))


def _run_variance(merits: Merits) -> Array:
    runs = len(merits.seeds)
    return np.asarray(merits.values.var(axis=0, ddof=1) / runs if runs > 1 else np.zeros(merits.values.shape[1:]))


def _noises(deviations: Array, run_variances: Sequence[Array]) -> list[Array]:
    """Images get random weights, the same in every setting; runs are independent."""
    images = deviations.shape[-1]
    generator, step = np.random.default_rng(0), max(1, _CHUNK // images)
    sizes = [min(step, DRAWS - start) for start in range(0, DRAWS, step)]
    by_images = np.concatenate([generator.normal(size=(size, images)) @ deviations.T for size in sizes])
    by_images /= np.sqrt(images * max(images - 1, 1))
    ends = np.cumsum([each.size for each in run_variances])[:-1]
    return [
        part.reshape(DRAWS, *variance.shape) + generator.normal(size=(DRAWS, *variance.shape)) * np.sqrt(variance)
        for part, variance in zip(np.split(by_images, ends, axis=1), run_variances, strict=True)
    ]


def _measured(first: _Side, second: _Side, covariances: Array, methods: Sequence[str], pairing: str) -> Measured | None:
    """The methods in both settings at the fractions where both rank them; None if there is nothing to compare."""
    rows = [[side.merits.methods.index(method) for method in methods] for side in (first, second)]
    values = [side.merits.of(methods).mean(axis=0) for side in (first, second)]
    columns = [
        (i, j)
        for i, j in paired_columns(first.merits.fractions, second.merits.fractions, pairing)
        if len(methods) > 1 and np.ptp(np.round(values[0][:, i], 12)) > 0 and np.ptp(np.round(values[1][:, j], 12)) > 0
    ]
    if not columns or first.images < 2:
        return None

    def both(fields: Sequence[NDArray[Any]]) -> NDArray[Any]:
        """The fields of both sides at these methods and columns, `(methods, 2, fractions, ...)`."""
        picked = [field[:, [pair[side] for pair in columns]] for side, field in enumerate(fields)]
        return np.stack(picked, axis=1)

    sides = list(zip((first, second), rows, strict=True))
    places = both([side.rows[index] for side, index in sides])
    covariance = covariances[np.ix_(places.ravel(), places.ravel())]
    covariance += np.diag(both([side.run_variance[index] for side, index in sides]).ravel())
    noise = both([np.moveaxis(side.noise[:, index], 0, -1) for side, index in sides])
    fractions = np.array([first.merits.fractions[i] for i, _ in columns])
    return Measured(
        both(values), covariance.reshape(*places.shape, *places.shape), np.moveaxis(noise, -1, 0), fractions
    )


def _estimate(measured: Measured | None) -> float:
    return float("nan") if measured is None else float(mean_rank_correlation(measured.merits))


def _draws(measured: Measured | None, seed: int) -> Array:
    """Draws of the true rank correlation, and of what another sample of images would measure: `(2, draws)`."""
    if measured is None:
        return np.full((2, DRAWS), np.nan)
    true = drawn_correlations(measured, np.random.default_rng((2, seed)))
    return np.stack([true, mean_rank_correlation(measured.merits + measured.noise)])


def _ends(draws: Array, estimate: float, bound: float, confidence: float) -> tuple[float, float]:
    """The central part of the true draws, extended to the reflected bootstrap (2 · estimate − measured draws).

    Where methods are close, the first reaches far and the second too little. Where they are well separated, the model
    behind the first is only roughly right (merits near ±1 need not lie on a line), and the second covers.
    """
    true, again = draws[:, ~np.isnan(draws).any(axis=0)]
    if not len(true) or np.isnan(estimate):
        return float("nan"), float("nan")
    tails = [(1 - confidence) / 2, (1 + confidence) / 2]
    ends = [np.quantile(true, tails), np.quantile(2 * estimate - again, tails)]
    low, high = np.clip(np.round([min(e[0] for e in ends), max(e[1] for e in ends)], 12), -bound, bound)
    return float(min(low, estimate)), float(max(high, estimate))


def _pair_interval(
    first: _Side, second: _Side, covariance: Array, pairing: str, confidence: float
) -> tuple[float, float, float]:
    methods = [method for method in first.merits.methods if method in second.merits.methods]
    measured = _measured(first, second, covariance, methods, pairing)
    estimate = _estimate(measured)
    low, high = _ends(_draws(measured, 0), estimate, 1.0, confidence)
    if measured is not None:
        tail = (1 - confidence) / 2
        low = -1.0 if low > -1 and extreme_is_plausible(measured, -1, tail) else low
        high = 1.0 if high < 1 and extreme_is_plausible(measured, 1, tail) else high
    return estimate, low, high


def _interval(row: Mapping[Hashable, object], sides: _Sides, confidence: float) -> tuple[float, float]:
    first, second = (
        sides.by_setting[Setting(*(str(row[f"{field}_{side}"]) for field in Setting._fields))] for side in "ab"
    )
    return _pair_interval(first, second, sides.covariance, str(row["pairing"]), confidence)[1:]
