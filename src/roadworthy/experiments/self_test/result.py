"""The self-test of a comparison: what the benchmark can see on this model and these images."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import pandas as pd

from roadworthy import statistics
from roadworthy.core.results import Degraded, Point, Predictions
from roadworthy.experiments.self_test.gamma import with_gamma
from roadworthy.experiments.self_test.record import SelfTestRecord
from roadworthy.experiments.self_test.sentences import Doubt, doubts, rows_of, sentences, summary

SelfTestState = Literal["passed", "not seen", "failed"]


@dataclass(frozen=True, eq=False)
class SelfTest:
    """What a self-test found, as sentences and tables (docs/self-test.md). It changes no ranking."""

    state: SelfTestState
    """of the setting to look at first. passed: the true order of damaged copies is found · not seen: damage of all
    images is not · failed: a copy scores clearly better than a less damaged one"""
    summary: str
    """in a few words"""
    sentences: tuple[str, ...]
    """none says more than its interval"""
    doubts: tuple[Doubt, ...]
    """what to be warned of, by setting"""
    tables: Mapping[str, pd.DataFrame]
    share: float | None = None
    """of the processor time of the run"""

    def __str__(self) -> str:
        return "\n".join([f"Self-test {self.state}: {self.summary}", *(f"- {text}" for text in self.sentences)])

    def __repr__(self) -> str:
        return f"<SelfTest {self.state}; print it for its sentences>"

    def known_order(self) -> pd.DataFrame:
        """Whether each setting finds the true order of damaged copies: pairs in order and Spearman, with intervals."""
        return self.tables["known_order"].copy()

    def damage(self) -> pd.DataFrame:
        """What it costs if 25, 50, 75 and 100 % of the images carry another image's map."""
        return self.tables["damage"].copy()

    def smoothness(self) -> pd.DataFrame:
        """How far blurring and sharpening alone move the scores of the leading methods, and γ before and after."""
        return self.tables["smoothness"].copy()

    def scope(self) -> pd.DataFrame:
        """How many imputed images lie outside the 95 % range of real ones, by imputer, order and fraction; R-OMS."""
        return self.tables["scope"].copy()

    def randomization(self) -> pd.DataFrame:
        """Scores of maps that were computed on a model with shuffled weights, beside the real ones."""
        return self.tables["randomization"].copy()


def self_test_of(
    record: SelfTestRecord,
    predictions: Mapping[Point, Predictions],
    main: tuple[str, str],
    confidence: float,
    margin: float,
    anytime: bool,
) -> SelfTest:
    """`main`: evaluator and imputer to look at first. `anytime`: early stopping chose the number of images."""

    def copies(*kinds: str) -> dict[str, Degraded]:
        return {name: copy for name, copy in record.copies.items() if copy.how in kinds}

    order, damage = statistics.known_order(
        predictions, record.predictions, copies("swapped"), record.negatives, record.seed, confidence, anytime
    )
    tables = {
        "known_order": order,
        "damage": damage,
        "smoothness": with_gamma(
            statistics.copy_changes(
                predictions, record.predictions, copies("blurred", "sharpened"), confidence, anytime
            ),
            record,
        ),
        "scope": statistics.scope(
            record.scope, next(iter(record.leaders), ""), record.orders, record.fractions, confidence
        ),
        "randomization": _randomization(
            statistics.copy_changes(predictions, record.predictions, copies("randomized"), confidence, anytime), margin
        ),
    }
    tested = list(dict.fromkeys(zip(order["evaluator"], order["imputer"], strict=True)))
    main = main if main in tested or not tested else tested[0]
    return SelfTest(
        known_state(order, main),
        summary(order, main),
        sentences(tables, main),
        doubts(tables),
        tables,
        record.share,
    )


def known_state(order: pd.DataFrame, main: tuple[str, str]) -> SelfTestState:
    """By all scores, a reversal in one order is hidden by the other; whether damage is seen, by the leading score."""
    own = order[(order["evaluator"] == main[0]) & (order["imputer"] == main[1])]
    if own["state"].isin(["reversed", "moved"]).any():
        return "failed"
    leading = own[own["leading"].astype(bool) & ~own["negative"].astype(bool)]
    return "passed" if len(leading) and (leading["state"] == "found").all() else "not seen"


def _randomization(changes: pd.DataFrame, margin: float) -> pd.DataFrame:
    """state: "falls" (clearly), "same maps" (the method does not use the model that it is given), "does not fall" (by
    more than the margin), "not shown"."""
    states = []
    for row in rows_of(changes):
        falls, stays = row.high < 0, row.low > -margin
        states.append("same maps" if row.same else "falls" if falls else "does not fall" if stays else "not shown")
    return changes.assign(state=states)
