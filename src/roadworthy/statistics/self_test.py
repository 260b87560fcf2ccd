"""Does the benchmark rank right here? Copies of a method whose true order is known, and how far other copies move.

A copy in which a share of the images carry the maps of other images is worse than its original, and the more, the
larger the share. On each image it has the score of one of two evaluations: with the image's own map, or with another's.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from roadworthy.core.results import Degraded, Predictions
from roadworthy.core.streams import stream, stream_key
from roadworthy.statistics.betting import betting_interval
from roadworthy.statistics.bootstrap import DRAWS, resampled_means
from roadworthy.statistics.curves import PointPredictions
from roadworthy.statistics.intervals import CONFIDENCE, Array, unanimous_interval, variance_of_mean
from roadworthy.statistics.scores import LEADING_SCORES, SCORES, Block, BlockKey, Score, blocks

SHARES = (0.25, 0.5, 0.75, 1.0)
"""of the images that carry another image's map"""
_LEVELS = (0.0, *SHARES)
_PAIRS = np.triu_indices(len(_LEVELS), k=1)

ORDER_COLUMNS = [
    *BlockKey._fields, "score", "leading", "method", "negative", "state", "accuracy", "accuracy_low", "accuracy_high",
    "spearman", "spearman_low", "spearman_high", "smallest", "images",
]  # fmt: skip
DAMAGE_COLUMNS = [
    *BlockKey._fields, "score", "leading", "method", "negative", "share", "value", "loss", "low", "high",
]  # fmt: skip
CHANGE_COLUMNS = [
    *BlockKey._fields, "score", "leading", "method", "how", "amount", "original", "value", "change", "low", "high",
    "same", "images",
]  # fmt: skip


def known_order(
    predictions: PointPredictions,
    copies: PointPredictions,
    swapped: Mapping[str, Degraded],
    negatives: Sequence[str] = (),
    seed: int = 0,
    confidence: float = CONFIDENCE,
    anytime: bool = False,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Whether each setting finds the true order of the damaged copies, and what each share of damage costs.

    The first table has a row per block, score and method. state: "found" (damage of all images is seen, nothing is
    reversed), "not seen", "reversed" (a copy is clearly better than a less damaged one); of a negative control, where
    nothing is lost, "still" or "moved" · accuracy, spearman: pairs of copies in their true order, and rank correlation
    with it, with bootstrap intervals · smallest: the smallest share of damaged images that is seen, as are all larger
    ones; NaN if none. The second has a row per share: loss, by how much the copy is worse than the original, with
    intervals that hold for all pairs of copies in a block, by all its scores, together. `anytime`: the number of images
    depended on results, so intervals are by betting.
    """
    orders: list[dict[str, Any]] = []
    damage: list[dict[str, Any]] = []
    for block, runs in _paired(predictions, copies, swapped):
        first = damaged_first(next(own.ids for point, own in copies.items() if point.method in swapped), seed)
        for name, pairs in runs.items():
            for copy, original, other in pairs:
                levels = np.stack([_damaged(original, other, first, share) for share in _LEVELS])
                tests = len(_PAIRS[0]) * len(pairs) * len(runs)
                about = {**block.key._asdict(), "score": name, "leading": name == block.leading_score}
                about |= {"method": copy.of, "negative": copy.of in negatives}
                order, rows = _order(levels, SCORES[name], about["negative"], confidence, tests, anytime)
                orders.append({**about, **order, "images": levels.shape[-1]})
                damage += [{**about, **row} for row in rows]
    return pd.DataFrame(orders, columns=ORDER_COLUMNS), pd.DataFrame(damage, columns=DAMAGE_COLUMNS)


def damaged_first(ids: NDArray[np.int64], seed: int) -> NDArray[np.int64]:
    """Where each image stands in the order in which images are damaged: fixed by its id, so that shares are nested."""
    key = stream_key(seed, ("self-test",))
    drawn = np.array([stream(key, int(id)).random() for id in ids])
    return np.argsort(np.argsort(drawn, kind="stable"), kind="stable")


def _damaged(original: Array, other: Array, first: NDArray[np.int64], share: float) -> Array:
    """Scores `(seeds, images)` of the copy with that share of images damaged, to the nearest image."""
    return np.where(first < int(share * len(first) + 0.5), other, original)


def _order(
    levels: Array, score: Score, negative: bool, confidence: float, tests: int, anytime: bool
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Of scores `(levels, seeds, images)`."""
    merit = levels if score.higher_is_better else -levels
    first, second = _PAIRS
    losses = merit[first] - merit[second]  # the less damaged one minus the more damaged one
    low, high = difference_intervals(losses, score, confidence, tests, anytime)
    against_original = first == 0
    seen = low[against_original] > 0
    smallest = np.nan
    for share, clear in zip(SHARES[::-1], seen[::-1], strict=True):
        if not clear:
            break
        smallest = share
    if negative:
        state = "moved" if (low > 0).any() or (high < 0).any() else "still"
    else:
        state = "reversed" if (high < 0).any() else "found" if seen[-1] else "not seen"
    order = {"state": state, "smallest": smallest, **_recovery(merit, confidence)}
    values = levels.mean(axis=(1, 2))
    rows = [{"share": 0.0, "value": values[0], "loss": 0.0, "low": 0.0, "high": 0.0}]
    rows += [
        {"share": share, "value": value, "loss": loss, "low": low, "high": high}
        for share, value, loss, low, high in zip(
            SHARES,
            values[1:],
            losses[against_original].mean(axis=(1, 2)),
            low[against_original],
            high[against_original],
            strict=True,
        )
    ]
    return order, rows


def _recovery(merit: Array, confidence: float) -> dict[str, float]:
    """Pairs in their true order, and Spearman's correlation with it, with percentile intervals of the bootstrap."""
    tails = [(1 - confidence) / 2, (1 + confidence) / 2]
    drawn = np.round(resampled_means(merit, DRAWS), 12)
    center = np.round(merit.mean(axis=(1, 2)), 12)[None]
    found: dict[str, float] = {}
    for name, measure in (("accuracy", _pairs_in_order), ("spearman", _correlation)):
        draws = measure(drawn)
        draws = draws[~np.isnan(draws)]
        ends = np.quantile(draws, tails) if len(draws) and merit.shape[-1] > 1 else (np.nan, np.nan)
        found |= {name: float(measure(center)[0]), f"{name}_low": float(ends[0]), f"{name}_high": float(ends[1])}
    return found


def _pairs_in_order(merit: Array) -> Array:
    """Of merits `(draws, levels)`: the share of pairs in which the less damaged copy is better; ties count half."""
    first, second = _PAIRS
    difference = merit[:, first] - merit[:, second]
    return np.asarray(((difference > 0) + 0.5 * (difference == 0)).mean(axis=1))


def _correlation(merit: Array) -> Array:
    """Spearman's correlation of `(draws, levels)` with the true order; NaN where all are equal.

    >>> _correlation(np.array([[5.0, 4, 3, 2, 1], [1, 2, 3, 4, 5], [1, 1, 1, 1, 1]])).tolist()
    [1.0, -1.0, nan]
    """
    equal = (merit[:, :, None] == merit[:, None, :]).sum(axis=2)
    ranks = (merit[:, :, None] > merit[:, None, :]).sum(axis=2) + (equal - 1) / 2
    ranks = ranks - ranks.mean(axis=1, keepdims=True)
    truth = -(np.arange(merit.shape[1]) - (merit.shape[1] - 1) / 2)
    with np.errstate(invalid="ignore"):
        return np.asarray(ranks @ truth / np.sqrt((ranks**2).sum(axis=1) * (truth**2).sum()))


def difference_intervals(
    differences: Array, score: Score, confidence: float, tests: int, anytime: bool = False
) -> tuple[Array, Array]:
    """Intervals of mean differences `(rows, seeds, images)` that hold for `tests` together (Bonferroni)."""
    error, reach = (1 - confidence) / tests, score.bounds[1] - score.bounds[0]
    mean, images = differences.mean(axis=(1, 2)), differences.shape[-1]
    if anytime:
        ends = [betting_interval(row.mean(axis=0), (-reach, reach), error) for row in differences]
        return np.array([low for low, _ in ends]), np.array([high for _, high in ends])
    variance = variance_of_mean(differences)
    half = variance.half_width(error / 2)
    low, high = mean - half, mean + half
    for row in np.flatnonzero(variance.error == 0):
        low[row], high[row] = unanimous_interval(mean[row], images, (-reach, reach), error)
    return np.maximum(low, -reach), np.minimum(high, reach)


def copy_changes(
    predictions: PointPredictions,
    copies: PointPredictions,
    named: Mapping[str, Degraded],
    confidence: float = CONFIDENCE,
    anytime: bool = False,
) -> pd.DataFrame:
    """How far the score moves from a method to a copy of it: a row per block, score and copy.

    change: positive where the copy scores better, whatever the direction of the score; low, high: its interval, which
    holds for all copies of a block and score together · same: the copy has the predictions of the original on every
    image, as if its maps were the same.
    """
    rows: list[dict[str, Any]] = []
    unchanged = _unchanged(predictions, copies, named)
    for block, runs in _paired(predictions, copies, named):
        for name, pairs in runs.items():
            sign = 1 if SCORES[name].higher_is_better else -1
            changes = np.stack([sign * (other - original) for _, original, other in pairs])
            low, high = difference_intervals(changes, SCORES[name], confidence, len(pairs), anytime)
            for row, (copy, original, other) in enumerate(pairs):
                rows.append(
                    {
                        **block.key._asdict(), "score": name, "leading": name == block.leading_score,
                        "method": copy.of, "how": copy.how, "amount": copy.amount, "original": original.mean(),
                        "value": other.mean(), "change": changes[row].mean(), "low": low[row], "high": high[row],
                        "same": copy.name in unchanged, "images": changes.shape[-1],
                    }
                )  # fmt: skip
    return pd.DataFrame(rows, columns=CHANGE_COLUMNS)


def _unchanged(predictions: PointPredictions, copies: PointPredictions, named: Mapping[str, Degraded]) -> set[str]:
    """Copies with the probabilities of their originals everywhere, to the bit."""
    different = set()
    for point, predicted in copies.items():
        if point.method in named and point.method not in different:
            original = _on(predictions[point._replace(method=named[point.method].of)], predicted.ids)
            if not np.array_equal(original.probability, predicted.probability):
                different.add(point.method)
    return set(named) - different


_Runs = dict[str, list[tuple[Degraded, Array, Array]]]


def _paired(
    predictions: PointPredictions, copies: PointPredictions, named: Mapping[str, Degraded]
) -> list[tuple[Block, _Runs]]:
    """Per block: the scores `(seeds, images)` of every copy and of its original, on the images of the copies."""
    own = {point: predicted for point, predicted in copies.items() if point.method in named}
    if not own:
        return []
    ids = next(iter(own.values())).ids
    wanted = {(named[point.method].of, *point[1:]) for point in own}
    originals = {point: _on(predictions[point], ids) for point in predictions if tuple(point) in wanted}
    found = []
    for block in blocks({**originals, **own}):
        runs: _Runs = {}
        for score in (name for name in LEADING_SCORES if name in block.scores):
            values = block.scores[score]
            pairs = [
                (copy, values[copy.of], values[name])
                for name, copy in named.items()
                if name in values and copy.of in values
            ]
            if pairs:
                runs[score] = pairs
        found.append((block, runs))
    return found


def _on(predictions: Predictions, ids: NDArray[np.int64]) -> Predictions:
    """The predictions for these images, in their order."""
    if np.array_equal(predictions.ids, ids):
        return predictions
    rows = {int(id): row for row, id in enumerate(predictions.ids)}
    return predictions.take([rows[int(id)] for id in ids])
