"""The contents of a report as plain tables; whatever wants a report provides these."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import pandas as pd

from roadworthy.core.errors import InputError
from roadworthy.core.results import Copy
from roadworthy.report.examples import Example, Gallery
from roadworthy.statistics import CONFIDENCE, MARGIN

AUDIT_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "masks": ("method", "order", "fraction", "accuracy", "low", "high", "chance"),
    "leakage": (
        "method",
        "order",
        "imputer",
        "fraction",
        "accuracy",
        "low",
        "high",
        "chance",
        "bits",
        "bits_low",
        "bits_high",
    ),
    "detection": ("imputer", "masks", "fraction", "auc", "error", "low", "high", "guess"),
    "geometry": ("method", "order", "fraction", "gamma", "clipped", "optimum", "blur"),
    "leads": ("text",),
    "conclusions": ("method", "order", "imputer", "conclusion", "why", "found", "bits"),
}
"""The tables of a leakage audit, with the columns that the report reads."""


class Card(NamedTuple):
    """A question that a reader has, answered in a few words."""

    question: str
    answer: str
    detail: str
    tone: Literal["good", "bad", "open", "plain"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Findings:
    """Tables have the columns of `roadworthy.statistics` and `roadworthy.audit`; None or empty parts are left out."""

    state: str
    """NO METHOD BEATS THE CONTROLS, CLEAR WINNER, TIE or NOT YET"""
    conclusion: str
    """one or two sentences"""
    details: Sequence[str] = ()
    """numbers, and the other settings"""
    cards: Sequence[Card] = ()
    confidence: float = CONFIDENCE
    """of the intervals in the tables"""
    margin: float = MARGIN
    """scores that surely differ by less are tied"""
    ranking: pd.DataFrame | None = None
    pairwise: pd.DataFrame | None = None
    curves: pd.DataFrame | None = None
    agreement: pd.DataFrame | None = None
    """the table of `agreement`, with the interval `low`, `high` if known"""
    controls: Sequence[str] = ()
    copies: Mapping[str, Copy] = field(default_factory=dict)
    """controls made from another method's maps"""
    preferred: tuple[str, str] | None = None
    """the evaluator and imputer that come first"""
    chance: float | None = None
    """the accuracy of guessing among the classes"""
    unlabeled: bool = False
    """no image has a label; the model's predictions stand in"""
    debiased: Sequence[str] = ()
    """imputers that are Noisy Linear"""
    fixed: Sequence[str] = ()
    """imputers that fill with the mean of the data"""
    gallery: Gallery = field(default_factory=Gallery)
    examples: Sequence[Example] = ()
    no_examples: str = ""
    """why there are none"""
    audit: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    """by name, see `AUDIT_COLUMNS`"""
    self_test: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    """the tables of a self-test, by name"""
    self_test_sentences: Sequence[str] = ()
    classes: pd.DataFrame | None = None
    """the table of `per_class`, with the names of the classes as `name`"""
    warnings: Sequence[str] = ()
    """those that the tables do not show"""
    missing: pd.DataFrame | None = None
    """the table of `complete_curves`: incomplete curves"""
    facts: Mapping[str, str] = field(default_factory=dict)
    """model, data, images, versions, date, fingerprints: shown as given"""
    runtimes: pd.DataFrame | None = None
    """evaluator, imputer, seconds per curve, relative"""
    plan: str = ""

    def __post_init__(self) -> None:
        for name, table in self.audit.items():
            if name not in AUDIT_COLUMNS:
                raise InputError(f"unknown audit table {name!r}: choose from {', '.join(AUDIT_COLUMNS)}")
            if missing := [column for column in AUDIT_COLUMNS[name] if column not in table]:
                raise InputError(f"audit table {name!r} lacks the columns {', '.join(missing)}: see docs/report.md")
