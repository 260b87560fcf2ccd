"""Differences between two runs: scores, ranks, and the curves that only one of them has."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from roadworthy.core.errors import InputError
from roadworthy.core.results import Point, Predictions
from roadworthy.statistics.curves import PER_IMAGE_NOISE, PointPredictions, Value, check_images
from roadworthy.statistics.intervals import CONFIDENCE, Array, bounded_interval
from roadworthy.statistics.ranking import ranking, scores
from roadworthy.statistics.scores import LEADING_SCORES, SCORES, Block, BlockKey, Score, blocks

COLUMNS = [
    "evaluator", "imputer", "model", "units", "score", "method", "before", "before_low", "before_high", "after",
    "after_low", "after_high", "difference", "low", "high", "paired", "change", "rank_before", "rank_after",
]  # fmt: skip


class _Curve(NamedTuple):
    block: BlockKey
    order: str
    method: str

    def __str__(self) -> str:
        return f"{self.method} ({self.block.evaluator} · {self.order} · {self.block.imputer})"


Fractions = frozenset[float]


def diff(
    before: PointPredictions,
    after: PointPredictions,
    value: Value = "accuracy",
    confidence: float = CONFIDENCE,
    unlabeled: bool = False,
) -> pd.DataFrame:
    """One row per block, score (srg, morf, lerf) and method of either run, both on images of the same data set.

    An image with the same id but another label belongs to another data set: an error, unless the images are
    `unlabeled` and the labels are a model's predictions.

    evaluator, imputer, model, units, score, method: what is compared · before, after (…_low, …_high): the scores with
    their intervals · difference: after − before · low, high: its interval, corrected by Bonferroni for all rows ·
    paired: both runs evaluated the same images (ids and labels) with the same seeds, so differences are taken image by
    image; otherwise the two intervals are combined · change: better, worse (0 lies outside low … high), none, only
    before, only after · rank_before, rank_after: among the methods and at the fractions that both runs have; 1 is best.
    """
    for run in (before, after):
        check_images(run)
    if not unlabeled:
        _check_labels(next(iter(before.values())), next(iter(after.values())))
    shared = _shared_fractions(before, after)
    old, new = _aligned(before, shared), _aligned(after, shared)
    keys = [*BlockKey._fields, "score", "method"]
    table = _scores(old, value).merge(_scores(new, value), on=keys, suffixes=("_before", "_after"))
    corrected = 1 - (1 - confidence) / max(1, len(table))
    pairs = {block.key: _BlockPair(block, old, new, value) for block in blocks(old, value)}
    rows = [
        {**row, **pairs[_block_of(row)].difference(row["score"], row["method"], corrected)}
        for row in table.rename(columns=_renamed).to_dict("records")
    ]
    unmatched = [*_only(before, after, "only before"), *_only(after, before, "only after")]
    integer = pd.Int64Dtype()
    return pd.DataFrame([*rows, *unmatched], columns=COLUMNS).astype({"rank_before": integer, "rank_after": integer})


def _check_labels(before: Predictions, after: Predictions) -> None:
    _, rows, others = np.intersect1d(before.ids, after.ids, return_indices=True)
    if wrong := int((before.labels[rows] != after.labels[others]).sum()):
        raise InputError(
            f"the runs are about different data sets: {wrong:,} of {len(rows):,} images with the same id have other "
            "labels; compare runs on the same data set"
        )


def _shared_fractions(before: PointPredictions, after: PointPredictions) -> dict[_Curve, Fractions]:
    """The curves of both runs, each with the fractions that all shared curves of its block have."""
    old, new = _fractions(before), _fractions(after)
    shared = [curve for curve in old if curve in new]
    if not shared:
        kinds = [sorted({curve.block.units for curve in run}) for run in (old, new)]
        if not set(kinds[0]) & set(kinds[1]):
            raise InputError(
                f"one run removes {', '.join(kinds[0])}, the other {', '.join(kinds[1])}: scores of different units do "
                "not compare; evaluate both in the same units"
            )
        raise InputError(
            f"the runs have nothing in common: one has {_some(old)}, the other {_some(new)}; compare runs that share a "
            "method with the same order, imputer and evaluator"
        )
    by_block: dict[BlockKey, Fractions] = {}
    for curve in shared:
        by_block[curve.block] = by_block.get(curve.block, old[curve]) & old[curve] & new[curve]
    for block, fractions in by_block.items():
        if 0 not in fractions or len(fractions) < 2:
            raise InputError(
                f"{block.evaluator} · {block.imputer}: the runs share only the fractions {sorted(fractions)}; a score "
                "needs 0 and at least one more: evaluate both runs at the same fractions"
            )
    return {curve: by_block[curve.block] for curve in shared}


def _fractions(predictions: PointPredictions) -> dict[_Curve, Fractions]:
    fractions: dict[_Curve, Fractions] = {}
    for point in predictions:
        curve = _curve(point)
        fractions[curve] = fractions.get(curve, frozenset()) | {point.fraction}
    return fractions


def _curve(point: Point) -> _Curve:
    return _Curve(BlockKey(point.evaluator, point.imputer, point.model, point.units), point.order, point.method)


def _some(curves: Mapping[_Curve, Fractions], most: int = 4) -> str:
    names = list(dict.fromkeys(map(str, curves)))
    return ", ".join(names[:most]) + (" …" if len(names) > most else "")


def _aligned(predictions: PointPredictions, shared: Mapping[_Curve, Fractions]) -> dict[Point, Predictions]:
    """The predictions at the shared points, images sorted by id."""
    order = np.argsort(next(iter(predictions.values())).ids, kind="stable")
    return {
        point: Predictions(each.ids[order], each.labels[order], each.predicted[order], each.probability[order])
        for point, each in predictions.items()
        if point.fraction in shared.get(_curve(point), ())
    }


def _scores(predictions: PointPredictions, value: Value) -> pd.DataFrame:
    table = scores(ranking(predictions, value=value))
    compared = table["score"].isin(LEADING_SCORES) & table["value"].notna()
    return table.loc[compared, [*BlockKey._fields, "score", "method", "value", "low", "high", "rank"]]


def _renamed(column: str) -> str:
    """`value_before` becomes `before`, `low_after` becomes `after_low`."""
    field, _, side = column.rpartition("_")
    return {"value": side, "low": f"{side}_low", "high": f"{side}_high"}.get(field, column)


def _block_of(row: Mapping[Any, Any]) -> BlockKey:
    return BlockKey(*(row[field] for field in BlockKey._fields))


class _BlockPair:
    """One block in both runs."""

    def __init__(self, block: Block, old: PointPredictions, new: PointPredictions, value: Value):
        old_points, new_points = (_in_block(run, block.key) for run in (old, new))
        self.blocks = (block, blocks(new_points, value)[0])
        first, second = (next(iter(points.values())) for points in (old_points, new_points))
        same_seeds = {point.seed for point in old_points} == {point.seed for point in new_points}
        # Seeds of evaluators with per-image noise are averaged, so they need not match.
        self.paired = (
            np.array_equal(first.ids, second.ids)
            and np.array_equal(first.labels, second.labels)
            and (block.key.evaluator in PER_IMAGE_NOISE or same_seeds)
        )

    def difference(self, score: str, method: str, confidence: float) -> dict[str, Any]:
        before, after = (block.scores[score][method] for block in self.blocks)
        interval = _paired if self.paired else _unpaired
        low, high = interval(before, after, SCORES[score], confidence)
        sign = 1 if SCORES[score].higher_is_better else -1
        change = {1: "better", -1: "worse", 0: "none"}[sign * (int(low > 0) - int(high < 0))]
        difference = float(after.mean() - before.mean())
        return {"difference": difference, "low": low, "high": high, "paired": self.paired, "change": change}


def _in_block(predictions: PointPredictions, block: BlockKey) -> PointPredictions:
    return {point: each for point, each in predictions.items() if _curve(point).block == block}


def _paired(before: Array, after: Array, score: Score, confidence: float) -> tuple[float, float]:
    if np.array_equal(before, after):  # equal on every image: there is no uncertainty
        return 0.0, 0.0
    reach = score.bounds[1] - score.bounds[0]
    return bounded_interval(after - before, (-reach, reach), confidence)


def _unpaired(before: Array, after: Array, score: Score, confidence: float) -> tuple[float, float]:
    """The interval of a difference from the intervals of both scores, arms added in quadrature (MOVER)."""
    old, (old_low, old_high) = before.mean(), bounded_interval(before, score.bounds, confidence)
    new, (new_low, new_high) = after.mean(), bounded_interval(after, score.bounds, confidence)
    down, up = np.hypot(new - new_low, old_high - old), np.hypot(new_high - new, old - old_low)
    return float(new - old - down), float(new - old + up)


def _only(run: PointPredictions, other: PointPredictions, change: str) -> Iterator[dict[str, Any]]:
    """Rows of the curves that only `run` has."""
    others = _fractions(other)
    for curve in (curve for curve in _fractions(run) if curve not in others):
        yield {**curve.block._asdict(), "score": curve.order, "method": curve.method, "change": change}
