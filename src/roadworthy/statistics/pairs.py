"""Which methods differ, how sure that is, and how many images it would take to be sure."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from roadworthy.core.errors import InputError
from roadworthy.statistics.contest import Contest, Duels, Stopping, contests
from roadworthy.statistics.curves import PointPredictions, Value
from roadworthy.statistics.intervals import LEVEL, Array
from roadworthy.statistics.scores import Block, blocks

POWER = 0.8
COLUMNS = [
    "imputer", "evaluator", "score", "method_a", "method_b", "control_a", "control_b", "difference", "low", "high",
    "p", "p_holm", "separated", "tie", "probability", "wins", "images", "images_needed",
]  # fmt: skip


def pairs(
    predictions: PointPredictions,
    controls: Sequence[str] = (),
    value: Value = "accuracy",
    level: float = LEVEL,
    stopping: Stopping | None = None,
) -> pd.DataFrame:
    """Every two methods on the leading score of each evaluator and imputer, the better one first (method_a).

    imputer, evaluator, score: where · method_a, method_b, control_a, control_b: who, and whether it is a control ·
    difference: by how much a is better, whatever the score's direction · low, high: simultaneous interval of it, all
    pairs at once · p, p_holm: of the paired test, plain and corrected by Holm over the pairs of the block ·
    separated: p_holm is below 1 − level · tie: surely within the margin (early stopping only) · probability: that a
    beats b, over resampled studies (NaN after early stopping) · wins: share of images on which a is better ·
    images: evaluated · images_needed: to tell the two apart with 80 % power at the corrected level, if the difference
    is what it seems; inf where no number of images would do. A evaluator and imputer with one method only has no rows.
    """
    level = stopping.level if stopping else level
    tables = []
    for block in blocks(predictions, value):
        rivals = block.scores[block.lead]
        if len(rivals) < 2:
            continue
        only = Block(block.evaluator, block.imputer, {block.lead: rivals})
        contest = contests(only, level, stopping)[block.lead]
        tables.append(
            pair_table(contest, level, stopping).assign(
                imputer=block.imputer, evaluator=block.evaluator, score=block.lead
            )
        )
    if not tables:
        methods = dict.fromkeys(point.method for point in predictions)
        raise InputError(f"pairs need 2 methods evaluated in the same setting, here: {', '.join(methods)}: add one")
    table = pd.concat(tables, ignore_index=True)
    for side in "ab":
        table[f"control_{side}"] = table[f"method_{side}"].isin(list(controls))
    return table[COLUMNS]


def pair_table(contest: Contest, level: float, stopping: Stopping | None) -> pd.DataFrame:
    duels, names = contest.duels, np.asarray(contest.methods, dtype=object)
    turned = duels.difference < 0  # the better one comes first
    adjusted = holm(duels.p, None if stopping is None else stopping.pairs)
    table = pd.DataFrame(
        {
            "method_a": names[np.where(turned, duels.second, duels.first)],
            "method_b": names[np.where(turned, duels.first, duels.second)],
            "difference": np.abs(duels.difference),
            "low": np.where(turned, -duels.high, duels.low),
            "high": np.where(turned, -duels.low, duels.high),
            "p": duels.p,
            "p_holm": adjusted,
            "separated": adjusted < 1 - level,
            "tie": np.maximum(np.abs(duels.low), np.abs(duels.high)) < stopping.margin if stopping else False,
            "probability": np.where(turned, 1 - duels.probability, duels.probability),
            "wins": np.where(turned, 1 - duels.wins, duels.wins),
            "images": contest.images,
            "images_needed": images_needed(duels, contest.images, level),
        }
    )
    return table.sort_values("difference", ascending=False, kind="stable", ignore_index=True)


def holm(p: Array, tests: int | None = None) -> Array:
    """p-values corrected by Holm for so many tests (as many as there are); NaN stays NaN.

    >>> holm(np.array([0.01, 0.04, 0.03])).round(3).tolist()  # 3 · .01; 2 · .03; the larger of 1 · .04 and the last
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p, kind="stable")
    factors = (len(p) if tests is None else tests) - np.arange(len(p))
    corrected = np.empty(len(p))
    corrected[order] = np.minimum(1, np.maximum.accumulate(factors * p[order]))
    return np.where(np.isnan(p), np.nan, corrected)


def images_needed(duels: Duels, images: int, level: float, power: float = POWER) -> Array:
    """How many images would separate each pair with that power, were the difference what it seems now."""
    goal = stats.norm.isf((1 - level) / (2 * max(1, duels.tests))) + stats.norm.ppf(power)
    allowed = (duels.difference / goal) ** 2 - duels.variance.seeds
    with np.errstate(divide="ignore", invalid="ignore"):
        needed = np.ceil(duels.variance.images * images / allowed)
    # What more images cannot shrink, the spread between seeds, may already be too much; then, and at 0, none will do.
    return np.where(np.isnan(duels.variance.images), np.nan, np.where(allowed > 0, np.maximum(needed, 10), np.inf))


def groups(contest: Contest, level: float = LEVEL, tests: int | None = None) -> list[list[str]]:
    """Largest sets of methods in which Holm's tests separate no two; best first. A method may be in several."""
    apart = holm(contest.duels.p, tests) < 1 - level
    found: list[frozenset[int]] = [frozenset(range(len(contest.methods)))]
    for a, b in zip(contest.duels.first[apart], contest.duels.second[apart], strict=True):
        split = [part for group in found for part in (_without(group, a, b))]
        found = [group for group in dict.fromkeys(split) if not any(group < other for other in split)]
    place = contest.ranks[0]
    sets = [sorted(group, key=lambda row: (place[row], row)) for group in found]
    ordered = sorted(sets, key=lambda rows: [place[row] for row in rows])
    return [[contest.methods[row] for row in rows] for rows in ordered]


def _without(group: frozenset[int], a: int, b: int) -> list[frozenset[int]]:
    return [group - {a}, group - {b}] if a in group and b in group else [group]


def letters(grouped: Sequence[Sequence[str]]) -> dict[str, str]:
    """Methods that share a letter are not separated.

    >>> letters([["x", "y"], ["y", "z"]])
    {'x': 'a', 'y': 'ab', 'z': 'b'}
    """
    named: dict[str, str] = {}
    for number, group in enumerate(grouped):
        letter = "abcdefghijklmnopqrstuvwxyz"[number % 26] + "'" * (number // 26)
        for method in group:
            named[method] = named.get(method, "") + letter
    return named


def undecided(table: pd.DataFrame) -> NDArray[np.bool_]:
    """Pairs that are neither clearly different nor surely tied."""
    return ~((table["low"] > 0) | table["tie"]).to_numpy(dtype=bool)
