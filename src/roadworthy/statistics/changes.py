"""What changed between two runs: scores beyond chance, ranks, and what is in one of them only."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from roadworthy.core.errors import InputError
from roadworthy.core.results import Point, Predictions
from roadworthy.statistics.curves import PER_IMAGE_NOISE, PointPredictions, Value, check_images
from roadworthy.statistics.intervals import LEVEL, Array, bounded_interval
from roadworthy.statistics.ranking import ranking, scores
from roadworthy.statistics.scores import SCORES, Block, Score, blocks

COMPARED = ("srg", "morf", "lerf")
COLUMNS = [
    "evaluator", "imputer", "score", "method", "before", "before_low", "before_high", "after", "after_low", "after_high",
    "difference", "low", "high", "paired", "change", "rank_before", "rank_after",
]  # fmt: skip


class Curve(NamedTuple):
    evaluator: str
    imputer: str
    order: str
    method: str


def changes(
    before: PointPredictions, after: PointPredictions, value: Value = "accuracy", level: float = LEVEL
) -> pd.DataFrame:
    """One row per evaluator, imputer, score (srg, morf, lerf) and method of either run.

    before, after (…_low, …_high): the scores with their intervals · difference: after − before · low, high: its
    interval, by Bonferroni for all rows at once · paired: both runs evaluated the same images (ids and labels) with the
    same seeds, so the difference is taken image by image; otherwise the two intervals are joined · change: better,
    worse (0 lies outside low … high), none, only before, only after · rank_before, rank_after: among the methods that
    both runs have, at the fractions that both have; 1 is best.
    """
    for side in (before, after):
        check_images(side)
    shared = _shared(before, after)
    then, now = _aligned(before, shared), _aligned(after, shared)
    table = _scores(then, value).merge(
        _scores(now, value), on=["evaluator", "imputer", "score", "method"], suffixes=("_before", "_after")
    )
    safe = 1 - (1 - level) / max(1, len(table))
    found = {
        place: _Pair(then, now, place, value) for place in {*zip(table["evaluator"], table["imputer"], strict=True)}
    }
    rows = [
        {**row, **found[row["evaluator"], row["imputer"]].difference(row["score"], row["method"], safe)}
        for row in table.rename(columns=_renamed).to_dict("records")
    ]
    lonely = [*_only(before, after, "only before"), *_only(after, before, "only after")]
    whole = pd.Int64Dtype()
    return pd.DataFrame([*rows, *lonely], columns=COLUMNS).astype({"rank_before": whole, "rank_after": whole})


def _shared(before: PointPredictions, after: PointPredictions) -> dict[Curve, frozenset[float]]:
    """The curves of both runs, each with the fractions that all shared curves of its evaluator and imputer have."""
    mine, theirs = _curves(before), _curves(after)
    common = [curve for curve in mine if curve in theirs]
    if not common:
        raise InputError(
            f"the runs have nothing in common: one has {_names(mine)}, the other {_names(theirs)}; compare runs that "
            "share a method in the same order, imputer and evaluator"
        )
    points: dict[tuple[str, str], frozenset[float]] = {}
    for curve in common:
        place = (curve.evaluator, curve.imputer)
        points[place] = points.get(place, mine[curve]) & mine[curve] & theirs[curve]
    for (evaluator, imputer), fractions in points.items():
        if 0 not in fractions or len(fractions) < 2:
            raise InputError(
                f"{evaluator} · {imputer}: the runs share the fractions {sorted(fractions)} only; a score needs 0 and at "
                "least one more: evaluator both runs at the same fractions"
            )
    return {curve: points[curve.evaluator, curve.imputer] for curve in common}


def _curves(predictions: PointPredictions) -> dict[Curve, frozenset[float]]:
    found: dict[Curve, frozenset[float]] = {}
    for point in predictions:
        curve = _curve(point)
        found[curve] = found.get(curve, frozenset()) | {point.fraction}
    return found


def _curve(point: Point) -> Curve:
    return Curve(point.evaluator, point.imputer, point.order, point.method)


def _names(curves: dict[Curve, frozenset[float]], most: int = 4) -> str:
    names = list(dict.fromkeys(f"{c.method} ({c.evaluator} · {c.order} · {c.imputer})" for c in curves))
    return ", ".join(names[:most]) + (" …" if len(names) > most else "")


def _aligned(predictions: PointPredictions, shared: dict[Curve, frozenset[float]]) -> dict[Point, Predictions]:
    """The shared points, images in the order of their ids."""
    order = np.argsort(next(iter(predictions.values())).ids, kind="stable")
    return {
        point: Predictions(one.ids[order], one.labels[order], one.predicted[order], one.probability[order])
        for point, one in predictions.items()
        if point.fraction in shared.get(_curve(point), ())
    }


def _scores(predictions: PointPredictions, value: Value) -> pd.DataFrame:
    table = scores(ranking(predictions, value=value))
    known = table["score"].isin(COMPARED) & table["value"].notna()
    return table.loc[known, ["evaluator", "imputer", "score", "method", "value", "low", "high", "rank"]]


def _renamed(column: str) -> str:
    """`value_before` is called `before`, `low_after` is called `after_low`."""
    field, _, side = column.rpartition("_")
    return {"value": side, "low": f"{side}_low", "high": f"{side}_high"}.get(field, column)


class _Pair:
    """One evaluator and imputer in both runs."""

    def __init__(self, then: PointPredictions, now: PointPredictions, place: tuple[str, str], value: Value):
        own = [
            {point: one for point, one in side.items() if (point.evaluator, point.imputer) == place}
            for side in (then, now)
        ]
        self.blocks: tuple[Block, Block] = (blocks(own[0], value)[0], blocks(own[1], value)[0])
        first, second = (next(iter(side.values())) for side in own)
        seeds = [{point.seed for point in side} for side in own]
        # Where noise is drawn image by image a seed is no sample of its own.
        self.paired = (
            np.array_equal(first.ids, second.ids)
            and np.array_equal(first.labels, second.labels)
            and (place[0] in PER_IMAGE_NOISE or seeds[0] == seeds[1])
        )

    def difference(self, score: str, method: str, level: float) -> dict[str, Any]:
        before, after = (block.scores[score][method] for block in self.blocks)
        interval = _paired if self.paired else _unpaired
        low, high = interval(before, after, SCORES[score], level)
        gain = 1 if SCORES[score].higher_is_better else -1
        change = {1: "better", -1: "worse", 0: "none"}[gain * (int(low > 0) - int(high < 0))]
        difference = float(after.mean() - before.mean())
        return {"difference": difference, "low": low, "high": high, "paired": self.paired, "change": change}


def _paired(before: Array, after: Array, score: Score, level: float) -> tuple[float, float]:
    if np.array_equal(before, after):  # the same prediction of every image: nothing is left to chance
        return 0.0, 0.0
    reach = score.bounds[1] - score.bounds[0]
    return bounded_interval(after - before, (-reach, reach), level)


def _unpaired(before: Array, after: Array, score: Score, level: float) -> tuple[float, float]:
    """Two intervals joined: their arms towards each other, and away from each other, added as squares (MOVER)."""
    middle, (low, high) = before.mean(), bounded_interval(before, score.bounds, level)
    later, (later_low, later_high) = after.mean(), bounded_interval(after, score.bounds, level)
    difference = later - middle
    down, up = np.hypot(later - later_low, high - middle), np.hypot(later_high - later, middle - low)
    return float(difference - down), float(difference + up)


def _only(mine: PointPredictions, theirs: PointPredictions, change: str) -> Iterator[dict[str, Any]]:
    there = _curves(theirs)
    for curve in (curve for curve in _curves(mine) if curve not in there):
        evaluator, imputer, order, method = curve
        yield {"evaluator": evaluator, "imputer": imputer, "score": order, "method": method, "change": change}
