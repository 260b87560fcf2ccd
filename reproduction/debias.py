"""Agreement of MoRF and LeRF of retrained networks, before and after geometric debiasing (paper, older supplement)."""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reproduction.ids import points_id
from reproduction.kept import committed
from reproduction.tables import METHODS, Results, where
from roadworthy import statistics
from roadworthy.core.results import Point, Predictions

PLAN, CHANCE, DRAWS, LEAST = "cifar10-tables-retrain", 0.1, 1000, 3
"""LEAST: methods with a debiased accuracy in both orders, so that a fraction counts"""
COLUMNS = ["seed", "before", "after", "change", "low", "high", "methods", "images", "points"]


def debiased_table(results: Results) -> pd.DataFrame:
    """Per seed, paired by `kept`: the same methods before and after, those whose debiased accuracy is defined in both
    orders. The interval is that of the paired bootstrap over images; γ is taken as known."""
    points, rows = committed(results, PLAN), []
    gammas = results.table("geometry")
    for seed in sorted({point.seed for point in points}):
        pairs = _pairs(points, gammas, seed) if len(gammas) else []
        if not pairs:
            continue
        images = pairs[0].shape[-1] - 1
        counts = np.random.default_rng(0).multinomial(images, np.full(images, 1 / images), DRAWS) / images
        before, after = _agreement(pairs, np.full((1, images), 1 / images))[0]
        drawn = _agreement(pairs, counts)
        low, high = np.percentile(drawn[:, 1] - drawn[:, 0], [2.5, 97.5])
        items = where(results.points(PLAN), seed=seed, imputer="linear")["item"]
        methods = sum(pair.shape[1] for pair in pairs)
        rows.append((seed, before, after, after - before, low, high, methods, images, points_id(items)))
    return pd.DataFrame(rows, columns=COLUMNS)


def debiased(
    accuracy: NDArray[np.float64], whole: NDArray[np.float64], gamma: NDArray[np.float64]
) -> NDArray[np.float64]:
    return whole - (whole - accuracy) / gamma


def _pairs(points: dict[Point, Predictions], gammas: pd.DataFrame, seed: int) -> list[NDArray[np.float64]]:
    """For each fraction of MoRF and its complement in LeRF: `(2 orders, methods, whole and removed, γ and images)`."""
    fractions = sorted({point.fraction for point in points if point.fraction > 0})
    found = []
    for fraction in fractions:
        places = (("morf", fraction), ("lerf", round(1 - fraction, 9)))
        methods = [m for m in METHODS if all(_defined(points, gammas, m, *place, seed) for place in places)]
        if len(methods) >= LEAST:
            sides = [[_values(points, gammas, method, *place, seed) for method in methods] for place in places]
            found.append(np.array(sides))
    return found


def _values(
    points: dict[Point, Predictions], gammas: pd.DataFrame, method: str, order: str, fraction: float, seed: int
) -> NDArray[np.float64]:
    both = [points[Point(method, order, "linear", "retrain", f, seed)].correct.astype(float) for f in (0.0, fraction)]
    gamma = float(where(gammas, method=method, order=order, fraction=fraction)["gamma"].iloc[0])
    return np.stack([np.concatenate([[gamma], one]) for one in both])


def _defined(
    points: dict[Point, Predictions], gammas: pd.DataFrame, method: str, order: str, fraction: float, seed: int
) -> bool:
    if Point(method, order, "linear", "retrain", fraction, seed) not in points:
        return False
    if where(gammas, method=method, order=order, fraction=fraction).empty:
        return False
    whole, removed = _values(points, gammas, method, order, fraction, seed)
    value = debiased(removed[1:].mean(), whole[1:].mean(), whole[0])
    return bool(CHANCE < value < whole[1:].mean())


def _agreement(pairs: list[NDArray[np.float64]], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """`(draws, before and after)`, each averaged over fractions."""
    totals = np.zeros((len(weights), 2))
    for pair in pairs:
        means = pair[..., 1:] @ weights.T  # orders × methods × (whole, removed) × draws
        corrected = debiased(means[:, :, 1], means[:, :, 0], pair[:, :, 0, :1])
        for column, values in enumerate((means[:, :, 1], corrected)):
            totals[:, column] += [statistics.spearman(-v[0], v[1]) for v in np.moveaxis(values, -1, 0)]
    return totals / len(pairs)
