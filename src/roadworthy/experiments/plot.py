"""`comparison.plot`: its figures, one call each."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from roadworthy.core.errors import InputError
from roadworthy.experiments.examples import examples
from roadworthy.report.palette import Look, colors

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from roadworthy.experiments.comparison import Comparison


@dataclass(frozen=True, eq=False)
class Plot:
    """Each call returns a matplotlib Figure."""

    comparison: "Comparison"

    @property
    def _looks(self) -> dict[str, Look]:
        return colors({point.method for point in self.comparison.predictions}, self.comparison.controls)

    def ranking(self) -> "Figure":
        """Scores with their intervals, best on top."""
        from roadworthy.report.figures.plots import ranking_plot

        return ranking_plot(self.comparison.ranking(), self._looks)

    def curves(self, evaluator: str | None = None, imputer: str | None = None) -> "Figure":
        """Accuracy against the fraction removed; by default of the setting to look at first."""
        from roadworthy.report.figures.curves import method_curves
        from roadworthy.statistics import preferred_block

        main = preferred_block(self.comparison.ranking(), self.comparison.results.preferred)
        table = self.comparison.curves()
        evaluator, imputer = evaluator or main[0], imputer or main[1]
        rows = table[(table["evaluator"] == evaluator) & (table["imputer"] == imputer)]
        if rows.empty:
            raise InputError(f"no curves of evaluator {evaluator!r} with imputer {imputer!r}")
        return method_curves(rows, self._looks)

    def agreement(self, measure: str = "spearman", pairing: str = "removed") -> "Figure":
        """How far the settings agree on the ranking of the methods."""
        from roadworthy.report.figures.plots import agreement_plot

        return agreement_plot(self.comparison.agreement_matrix(measure, pairing))

    def ranks(self) -> "Figure":
        """How the ranks of the methods change between imputers."""
        from roadworthy.report.figures.plots import ranks_plot

        return ranks_plot(self.comparison.ranking(), self._looks)

    def examples(self) -> "Figure":
        """An image, its maps, and what is left of it as each method removes pixels."""
        from roadworthy.report.figures.pictures import modified_data

        source = self.comparison.source
        if source is None:
            raise InputError("a saved comparison holds no images: compare again, or load a run directory of a plan")
        return modified_data(examples(source, self.comparison.leaders(), most_fractions=5, images=1)[0])
