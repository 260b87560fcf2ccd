"""The contents of a report as plain tables; whatever wants a report provides these."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import pandas as pd

from roadworthy.core.errors import InputError
from roadworthy.core.results import Copy
from roadworthy.report.examples import Example
from roadworthy.statistics import CONFIDENCE

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
    ranking: pd.DataFrame | None = None
    curves: pd.DataFrame | None = None
    agreement: pd.DataFrame | None = None
    controls: Sequence[str] = ()
    copies: Mapping[str, Copy] = field(default_factory=dict)
    """controls made from another method's maps"""
    preferred: tuple[str, str] | None = None
    """the evaluator and imputer that come first"""
    examples: Sequence[Example] = ()
    no_examples: str = ""
    """why there are none"""
    audit: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    """by name, see `AUDIT_COLUMNS`"""
    classes: pd.DataFrame | None = None
    """the table of `per_class`, with the names of the classes as `name`"""
    warnings: Sequence[str] = ()
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
