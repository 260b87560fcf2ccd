"""`comparison.plot`: its figures, one call each."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from roadworthy.core.errors import InputError
from roadworthy.report.emphasis import emphasized
from roadworthy.report.palette import Look, colors
from roadworthy.report.ranks import PAIRINGS, Agreement, rank_panels
from roadworthy.statistics import BlockKey, Setting, agreement_change, preferred_block

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from roadworthy.experiments.comparison import Comparison


@dataclass(frozen=True, eq=False)
class Plot:
    """Each call returns a matplotlib Figure, which a notebook shows and `savefig` writes."""

    comparison: "Comparison"

    def ranking(self, evaluator: str | None = None, imputer: str | None = None) -> "Figure":
        """Scores with their intervals, best on top, and the blind controls as lines; by default of the main setting."""
        from roadworthy.report.figures.forest import forest

        key = self._key(evaluator, imputer)
        standing = self.comparison.standings()[key]
        if not standing.methods:
            raise InputError(f"nothing but controls was evaluated with imputer {key.imputer!r}: add a method")
        return forest(standing, self._looks, self.comparison.results.confidence)

    def curves(self, evaluator: str | None = None, imputer: str | None = None) -> "Figure":
        """Accuracy against the fraction removed, without copied controls; by default of the main setting."""
        from roadworthy.report.figures.setting_curves import References, setting_curves

        key, table = self._key(evaluator, imputer), self.comparison.curves()
        rows = table[(table["evaluator"] == key.evaluator) & (table["imputer"] == key.imputer)]
        rows = rows[~rows["method"].isin(list(self.comparison.results.copies))]
        whole = float(rows.loc[rows["fraction"] == 0, "accuracy"].mean())
        references = References(self.comparison.chance, {(key.evaluator, key.imputer): whole})
        return setting_curves(rows, self._looks, self._emphasized(key), references)

    def agreement(self, measure: str = "spearman", pairing: str = "removed") -> "Figure":
        """How far the settings agree on the ranking of the methods; Spearman's correlation has intervals."""
        from roadworthy.report.figures.agreement import agreement_map

        table = self.comparison.agreement()
        if table.empty:
            raise InputError("one setting only: agreement needs two orders, imputers or evaluators")
        return agreement_map(table, measure, pairing, self.comparison.results.confidence)

    def ranks(self) -> "Figure":
        """What each imputer changes: ranks by MoRF and by LeRF, and how far the two orders agree."""
        from roadworthy.report.figures.slopes import slopes

        ranking, preferred = self.comparison.ranking(), self.comparison.results.preferred
        if not rank_panels(ranking, ranking[:0], preferred):
            raise InputError("no setting has two methods in both orders: ranks by MoRF and LeRF need them")
        panels = rank_panels(ranking, self.comparison.agreement(), preferred)
        return slopes(panels, self._looks, self._emphasized(self._key()), debiasing_headline(self.comparison))

    def examples(self) -> "Figure":
        """An image from the original to the model's answer, as the best and the worst method remove its pixels."""
        from roadworthy.report.figures.answers import answered

        shown = self.comparison.gallery()
        if shown.lead is None:
            why = self.comparison.findings().no_examples
            raise InputError(f"{why}: compare again, or load a run directory of a plan")
        return answered(shown, shown.lead)

    @property
    def _looks(self) -> dict[str, Look]:
        return colors({point.method for point in self.comparison.predictions}, self.comparison.controls)

    def _key(self, evaluator: str | None = None, imputer: str | None = None) -> BlockKey:
        main = preferred_block(self.comparison.ranking(), self.comparison.results.preferred)
        evaluator, imputer = evaluator or main[0], imputer or main[1]
        keys = self.comparison.standings()
        if found := [key for key in keys if (key.evaluator, key.imputer) == (evaluator, imputer)]:
            return found[0]
        there = "; ".join(f"{key.evaluator}, {key.imputer}" for key in keys)
        raise InputError(f"nothing was evaluated with evaluator {evaluator!r} and imputer {imputer!r}, but: {there}")

    def _emphasized(self, key: BlockKey) -> tuple[str, ...]:
        return emphasized(_block(self.comparison.ranking(), key), tuple(self.comparison.results.copies))


def _block(ranking: "pd.DataFrame", key: BlockKey) -> "pd.DataFrame":
    return ranking[(ranking["evaluator"] == key.evaluator) & (ranking["imputer"] == key.imputer)]


def debiasing_headline(comparison: "Comparison") -> str:
    """How much more MoRF and LeRF agree with the main imputer than with a fixed color; "" if it is not known.

    By the paper's pairing of the fractions where it can be had.
    """
    results, ranking = comparison.results, comparison.ranking()
    evaluator, imputer = preferred_block(ranking, results.preferred)
    fixed = next(iter(results.fixed_imputers), "")
    settings = {(point.evaluator, point.order, point.imputer) for point in comparison.predictions}
    pairs = [[(evaluator, order, name) for order in ("morf", "lerf")] for name in (fixed, imputer)]
    known = all(setting in settings for pair in pairs for setting in pair)
    if fixed == imputer or not known or len(rank_panels(ranking, ranking[:0])) < 2:
        return ""
    before, after = ((Setting(*pair[0]), Setting(*pair[1])) for pair in pairs)
    options: dict[str, Any] = {"controls": comparison.controls, "confidence": results.confidence}
    changes = (
        Agreement(*agreement_change(comparison.predictions, before, after, name, **options)) for name in PAIRINGS
    )
    change = next((change for change in changes if not math.isnan(change.value)), None)
    if change is None:
        return ""
    if change.low > 0 or change.high < 0:
        words = f"MoRF and LeRF agree {'more' if change.low > 0 else 'less'}"
    else:
        words = "no clear change in the agreement of MoRF and LeRF"
    return f"With {imputer}, not {fixed}, {words}: Spearman by {change}"
