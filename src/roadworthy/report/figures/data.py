"""The input of all figures: tables, images, and reasons for whatever is missing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from roadworthy.report.examples import Example
from roadworthy.report.palette import Look, colors

AUDIT: Mapping[str, tuple[str, ...]] = {
    "masks": ("method", "order", "fraction", "accuracy", "low", "high", "chance", "bits", "bits_if_optimal"),
    "detection": ("imputer", "masks", "fraction", "error", "low", "high", "guess"),
    "geometry": ("method", "order", "fraction", "gamma", "clipped", "optimum"),
}
"""The audit's tables, and the columns that figures draw."""


@dataclass(frozen=True, eq=False)
class FigureData:
    curves: pd.DataFrame
    agreement: pd.DataFrame
    runtimes: pd.DataFrame
    """evaluator, imputer, seconds, relative"""
    audit: Mapping[str, pd.DataFrame]
    """masks, detection and geometry; empty where missing"""
    examples: Sequence[Example]
    controls: tuple[str, ...]
    classes: int
    method: str
    """for figures of a single method: the requested one, or the best"""
    linear_imputer: str
    """the name of the imputer that is Noisy Linear, "" if there is none"""
    fixed_imputer: str
    """the name of the imputer that fills with a constant, "" if there is none"""
    gaps: Mapping[str, str]
    """what is missing to why, and how to get it"""

    @property
    def methods(self) -> list[str]:
        return [name for name in self.curves["method"].unique() if name not in self.controls]

    @property
    def looks(self) -> dict[str, Look]:
        audited = [table["method"] for table in self.audit.values() if "method" in table]
        names = pd.concat([self.curves["method"], *audited])
        return colors(list(names.unique()), self.controls)
