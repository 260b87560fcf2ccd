"""All that a page tells, as plain tables: the one thing that a comparison and a store must give."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd

from roadworthy.core.errors import InputError
from roadworthy.report.html.strips import Example

AUDITS: Mapping[str, tuple[str, ...]] = {
    "masks": ("method", "order", "fraction", "accuracy", "low", "high", "chance"),
    "recovery": ("imputer", "masks", "fraction", "error", "low", "high", "guess"),
    "geometry": ("method", "order", "fraction", "gamma", "clipped", "optimum", "blur"),
    "leads": ("text",),
    "conclusions": ("method", "order", "imputer", "conclusion", "why"),
}
"""Tables of a leakage audit, by name, with the columns that the page reads."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Findings:
    """Tables have the columns of `roadworthy.statistics`; what is not known is None or empty, and left out."""

    conclusion: str
    """in two sentences"""
    details: Sequence[str] = ()
    """a line per evaluator and imputer"""
    ranking: pd.DataFrame | None = None
    curves: pd.DataFrame | None = None
    agreement: pd.DataFrame | None = None
    """of `agreement`"""
    controls: Sequence[str] = ()
    stories: Sequence[Example] = ()
    no_pictures: str = ""
    """why there are none"""
    audits: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    classes: pd.DataFrame | None = None
    """of `per_class`, with the classes' names as `name`"""
    warnings: Sequence[str] = ()
    missing: pd.DataFrame | None = None
    """of `complete_curves`: curves that are not complete"""
    facts: Mapping[str, str] = field(default_factory=dict)
    """model, data, images, versions, date, fingerprints: shown as they come"""
    runtimes: pd.DataFrame | None = None
    """evaluator, imputer, seconds per curve, relative"""
    plan: str = ""

    def __post_init__(self) -> None:
        for name, table in self.audits.items():
            if name not in AUDITS:
                raise InputError(f"audit {name!r} is unknown: there are {', '.join(AUDITS)}")
            if lacking := [column for column in AUDITS[name] if column not in table]:
                raise InputError(f"audit {name!r} lacks the columns {', '.join(lacking)}: see docs/report.md")
