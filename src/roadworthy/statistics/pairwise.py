"""Which methods differ, with what confidence, and how many images it would take to separate them."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy import stats

from roadworthy.core.errors import InputError
from roadworthy.statistics.curves import PointPredictions, Value
from roadworthy.statistics.early_stopping import StoppingRule
from roadworthy.statistics.intervals import CONFIDENCE, Array
from roadworthy.statistics.paired_differences import PairedComparisons, PairedDifferences, paired_comparisons
from roadworthy.statistics.scores import Block, blocks

POWER = 0.8
MARGIN = 0.02
"""scores that surely differ by less are tied"""
PAIRWISE_COLUMNS = [
    "imputer", "evaluator", "model", "units", "score", "method_a", "method_b", "control_a", "control_b", "difference",
    "low", "high", "p", "p_holm", "separated", "tie", "probability", "wins", "images", "images_needed",
]  # fmt: skip


def pairwise(
    predictions: PointPredictions,
    controls: Sequence[str] = (),
    value: Value = "accuracy",
    confidence: float = CONFIDENCE,
    stopping: StoppingRule | None = None,
    margin: float = MARGIN,
) -> pd.DataFrame:
    """Every two methods on the leading score of each block, the better one first (method_a).

    imputer, evaluator, model, units, score: the block and its leading score · method_a, method_b, control_a,
    control_b: the methods, and whether each is a control · difference: by how much a is better, whatever the
    direction of the score · low, high: its interval, simultaneous for all pairs of the block · p, p_holm: of the
    paired test, plain and corrected by Holm over the pairs of the block (after early stopping: for all that the
    rule decides) · separated: p_holm is below 1 − confidence · tie: the interval lies within ±`margin` ·
    probability: share of resamples in which a is better (NaN after early stopping) · wins: proportion of images on
    which a is better · images: evaluated · images_needed: to separate the two with 80 % power at the corrected
    level, if the true difference is the observed one; inf where no number would suffice. A block with a single
    method has no rows. A `stopping` rule has its own confidence and margin.
    """
    confidence, margin = (stopping.confidence, stopping.margin) if stopping else (confidence, margin)
    tables = []
    for block in blocks(predictions, value):
        score = block.leading_score
        if len(block.scores[score]) < 2:
            continue
        leading = Block(block.key, {score: block.scores[score]})
        comparisons = paired_comparisons(leading, confidence, stopping)[score]
        tables.append(_pair_table(comparisons, confidence, margin, stopping).assign(**block.key._asdict(), score=score))
    if not tables:
        methods = dict.fromkeys(point.method for point in predictions)
        raise InputError(
            f"a pairwise comparison needs 2 methods evaluated in the same setting, here: {', '.join(methods)}: add one"
        )
    table = pd.concat(tables, ignore_index=True)
    for side in "ab":
        table[f"control_{side}"] = table[f"method_{side}"].isin(list(controls))
    return table[PAIRWISE_COLUMNS]


def _pair_table(
    comparisons: PairedComparisons, confidence: float, margin: float, stopping: StoppingRule | None
) -> pd.DataFrame:
    pairs, names = comparisons.differences, np.asarray(comparisons.methods, dtype=object)
    swapped = pairs.mean < 0  # the better method comes first
    adjusted = corrected(pairs, None if stopping is None else stopping.comparisons)
    table = pd.DataFrame(
        {
            "method_a": names[np.where(swapped, pairs.second, pairs.first)],
            "method_b": names[np.where(swapped, pairs.first, pairs.second)],
            "difference": np.abs(pairs.mean),
            "low": np.where(swapped, -pairs.high, pairs.low),
            "high": np.where(swapped, -pairs.low, pairs.high),
            "p": pairs.p,
            "p_holm": adjusted,
            "separated": adjusted < 1 - confidence,
            "tie": np.maximum(np.abs(pairs.low), np.abs(pairs.high)) < margin,
            "probability": np.where(swapped, 1 - pairs.probability, pairs.probability),
            "wins": np.where(swapped, 1 - pairs.wins, pairs.wins),
            "images": comparisons.images,
            "images_needed": images_needed(pairs, comparisons.images, confidence),
        }
    )
    return table.sort_values("difference", ascending=False, kind="stable", ignore_index=True)


def corrected(pairs: PairedDifferences, tests: int | None = None) -> Array:
    """p-values that hold for all pairs together."""
    return holm(pairs.p, tests) if pairs.corrected is None else pairs.corrected


def holm(p: Array, tests: int | None = None) -> Array:
    """p-values corrected by Holm for `tests` tests (default: as many as there are); NaN stays NaN.

    >>> holm(np.array([0.01, 0.04, 0.03])).round(3).tolist()  # 3 · .01; 2 · .03; the larger of 1 · .04 and the last
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p, kind="stable")
    factors = (len(p) if tests is None else tests) - np.arange(len(p))
    corrected = np.empty(len(p))
    corrected[order] = np.minimum(1, np.maximum.accumulate(factors * p[order]))
    return np.where(np.isnan(p), np.nan, corrected)


def images_needed(pairs: PairedDifferences, images: int, confidence: float, power: float = POWER) -> Array:
    """How many images would separate each pair with that power, if the true difference is the observed one."""
    goal = stats.norm.isf((1 - confidence) / (2 * max(1, pairs.tests))) + stats.norm.ppf(power)
    allowed = (pairs.mean / goal) ** 2 - pairs.variance.seeds
    with np.errstate(divide="ignore", invalid="ignore"):
        needed = np.ceil(pairs.variance.images * images / allowed)
    # More images do not reduce the variance between seeds. Where that alone is too large, or the difference is 0, no
    # number of images suffices.
    return np.where(np.isnan(pairs.variance.images), np.nan, np.where(allowed > 0, np.maximum(needed, 10), np.inf))


def groups(comparisons: PairedComparisons, confidence: float = CONFIDENCE, tests: int | None = None) -> list[list[str]]:
    """The largest sets of methods that Holm's tests do not separate, best first. A method may be in several."""
    separated = corrected(comparisons.differences, tests) < 1 - confidence
    pairs = zip(comparisons.differences.first[separated], comparisons.differences.second[separated], strict=True)
    sets: list[frozenset[int]] = [frozenset(range(len(comparisons.methods)))]
    for a, b in pairs:
        split = [part for members in sets for part in _without(members, a, b)]
        sets = [members for members in dict.fromkeys(split) if not any(members < other for other in split)]
    rank = comparisons.ranks[0]
    by_rank = [sorted(members, key=lambda row: (rank[row], row)) for members in sets]
    ordered = sorted(by_rank, key=lambda rows: [rank[row] for row in rows])
    return [[comparisons.methods[row] for row in rows] for rows in ordered]


def _without(members: frozenset[int], a: int, b: int) -> list[frozenset[int]]:
    return [members - {a}, members - {b}] if a in members and b in members else [members]


def letters(grouped: Sequence[Sequence[str]]) -> dict[str, str]:
    """A compact letter display: methods that share a letter are not separated.

    >>> letters([["x", "y"], ["y", "z"]])
    {'x': 'a', 'y': 'ab', 'z': 'b'}
    """
    by_method: dict[str, str] = {}
    for number, group in enumerate(grouped):
        letter = "abcdefghijklmnopqrstuvwxyz"[number % 26] + "'" * (number // 26)
        for method in group:
            by_method[method] = by_method.get(method, "") + letter
    return by_method
