"""Early stopping replayed on the harvested points: after how many images is what decided, and is it right?"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reproduction.ids import points_id
from reproduction.kept import committed
from reproduction.later import LABEL, points_of, scores_of
from reproduction.tables import METHODS, Results
from roadworthy import statistics
from roadworthy.core.random import Key
from roadworthy.experiments.items import growing_rows
from roadworthy.statistics import StoppingRule
from roadworthy.statistics.anytime import anytime_bounds
from roadworthy.statistics.evidence import interval

Array = NDArray[np.float64]
CONTROLS = ("random", "edges", "center")
PAIRS = 27 * 26 // 2
"""of eight methods, three controls and their copies, as `compare` counts them by default"""
REACH = 2.0
"""of differences between two scores LeRF − MoRF of an image"""
FIRST = 64
"""images before the first look, as `compare` takes them"""
ORDERINGS = 20
"""random orders of the images"""
QUESTIONS = ("best", "first_three", "all")
COLUMNS = ["until", "population", "ordering", *QUESTIONS, "reversed", "images", "points"]


def stopping_table(results: Results) -> pd.DataFrame:
    """Per rule and random order: images until the best, the first three and all are decided; NaN where they are not.

    reversed: pairs that were ever separated, but the other way round on all images. `until="best"` asks for the best
    alone. Images are what costs: maps and predictions are computed for those taken only.
    """
    predictions = {p: one for p, one in committed(results, LABEL).items() if p.method in METHODS}
    whole = scores_of(predictions)
    if whole is None:
        return pd.DataFrame()
    names, values = tuple(METHODS), np.stack([whole.scores["srg"][name].mean(axis=0) for name in METHODS])
    images, items, rows = values.shape[1], points_id(points_of(results, LABEL, *METHODS)), []
    for rule in (rule_of(names, images, until, finite) for until in ("best", "ranked") for finite in (False, True)):
        for number in range(ORDERINGS):
            order = np.argsort(Key(0).fold("stopping").uniform([number], (images,))[0].numpy())
            needed, wrong = images_until(names, values[:, order], rule, looks(images))
            population = "finite" if rule.finite else "infinite"
            rows.append((rule.until, population, number, *needed, wrong, images, items))
    return pd.DataFrame(rows, columns=COLUMNS)


def rule_of(names: tuple[str, ...], images: int, until: str, finite: bool) -> StoppingRule:
    """As `compare` makes it for these methods with its default controls."""
    return StoppingRule(
        statistics.CONFIDENCE,
        statistics.MARGIN,
        PAIRS,
        until,
        methods=names,
        controls=CONTROLS,
        images=images,
        finite=finite,
    )


def looks(images: int) -> list[int]:
    """After how many images `compare` looks."""
    return [int(count) for count in np.cumsum([len(rows) for rows in growing_rows(images, FIRST, seed=0)])]


def images_until(
    names: tuple[str, ...], values: Array, rule: StoppingRule, counts: Sequence[int]
) -> tuple[list[float], int]:
    """Images until each of the QUESTIONS is decided (NaN: never), and the pairs that were ever separated wrongly."""
    truth = values.mean(axis=1)
    leading = dict(zip(QUESTIONS, (1, 3, len(names) - 1), strict=True))
    asked = QUESTIONS[:1] if rule.until == "best" else QUESTIONS
    needed, wrong = dict.fromkeys(QUESTIONS, np.nan), 0
    for count in counts:
        above, tied = decided(names, values[:, :count], rule)
        wrong = max(wrong, int((above & (truth[:, None] < truth[None])).sum()))
        for question in asked:
            if np.isnan(needed[question]) and settled(above, tied, values[:, :count].mean(axis=1), leading[question]):
                needed[question] = count
        if not np.isnan([needed[question] for question in asked]).any():
            break
    return list(needed.values()), wrong


def decided(names: tuple[str, ...], values: Array, rule: StoppingRule) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which pairs `(methods, methods)` are separated, the better one first, and which are tied."""
    bounds = anytime_bounds(names, values, REACH, rule, intervals=False)
    low, high, (first, second) = bounds.low.copy(), bounds.high.copy(), np.triu_indices(len(names), k=1)
    means, population = values.mean(axis=1), rule.images if rule.finite else None
    close = (low <= 0) & (high >= 0) & (np.abs(means[first] - means[second]) < rule.margin)
    for pair in np.flatnonzero(close) if rule.methods else ():  # only these may be tied
        a, b = first[pair], second[pair]
        low[pair], high[pair] = interval(values[a] - values[b], REACH, rule.error_of(names[a], names[b]), population)
    above, tied = np.zeros((2, len(names), len(names)), bool)
    above[first, second], above[second, first] = bounds.low > 0, bounds.high < 0
    tied[first, second] = np.maximum(np.abs(low), np.abs(high)) < rule.margin
    return above, tied | tied.T


def settled(above: NDArray[np.bool_], tied: NDArray[np.bool_], means: Array, leading: int) -> bool:
    """Whether the places of the first `leading` methods are decided, each against all that follow."""
    order = np.argsort(-means)
    known = above | above.T | tied
    return all(known[order[place], order[place + 1 :]].all() for place in range(leading))
