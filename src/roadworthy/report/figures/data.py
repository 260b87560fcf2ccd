"""The input of all figures: tables, images, and reasons for whatever is missing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from roadworthy.report.emphasis import emphasized
from roadworthy.report.examples import Example, Gallery
from roadworthy.report.figures.setting_curves import References
from roadworthy.report.palette import Look, colors
from roadworthy.statistics import BlockKey, Standing

AUDIT: Mapping[str, tuple[str, ...]] = {
    "masks": ("method", "order", "fraction", "accuracy", "low", "high", "chance", "bits", "bits_if_optimal"),
    "detection": ("imputer", "masks", "order", "fraction", "error", "low", "high", "guess"),
    "geometry": ("method", "order", "fraction", "gamma", "clipped", "optimum"),
}
"""The audit's tables, and the columns that figures draw."""


@dataclass(frozen=True, eq=False)
class FigureData:
    curves: pd.DataFrame
    ranking: pd.DataFrame
    standings: Mapping[BlockKey, Standing]
    average_ranks: pd.DataFrame
    agreement: pd.DataFrame
    """with intervals"""
    runtimes: pd.DataFrame
    """evaluator, imputer, seconds, relative"""
    audit: Mapping[str, pd.DataFrame]
    """masks, detection and geometry; empty where missing"""
    examples: Sequence[Example]
    gallery: Gallery
    controls: tuple[str, ...]
    copies: tuple[str, ...]
    """controls made from a method's maps"""
    classes: int
    chance: float
    preferred: tuple[str, str]
    """the evaluator and imputer that come first"""
    confidence: float
    method: str
    """for figures of a single method: the requested one, or the best"""
    linear_imputer: str
    """the name of the imputer that is Noisy Linear, "" if there is none"""
    fixed_imputer: str
    """the name of the imputer that fills with a constant, "" if there is none"""
    headline: str
    """what debiasing changes, in a sentence; "" where it is not known"""
    gaps: Mapping[str, str]
    """what is missing to why, and how to get it"""

    @property
    def methods(self) -> list[str]:
        return [name for name in self.curves["method"].unique() if name not in self.controls]

    @property
    def references(self) -> References:
        """The accuracies at fraction 0 are those before removal."""
        blocks = self.curves[self.curves["fraction"] == 0].groupby(["evaluator", "imputer"])
        whole = {(str(key[0]), str(key[1])): float(rows["accuracy"].mean()) for key, rows in blocks}
        return References(self.chance, whole)

    @property
    def leaders(self) -> tuple[str, ...]:
        """Who stands out in every figure: those of the setting that comes first."""
        return self.emphasized(*self.preferred)

    def blind(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Without the controls that are made from a method's maps: they say something about the benchmark only."""
        return rows[~rows["method"].isin(list(self.copies))]

    def emphasized(self, evaluator: str, imputer: str) -> tuple[str, ...]:
        table = self.ranking
        return emphasized(table[(table["evaluator"] == evaluator) & (table["imputer"] == imputer)], self.copies)

    @property
    def looks(self) -> dict[str, Look]:
        audited = [table["method"] for table in self.audit.values() if "method" in table]
        names = pd.concat([self.curves["method"], *audited])
        return colors(list(names.unique()), self.controls)
