"""What `truth_test` found: how far each benchmark recovers the true order, and how it compares with another one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import final

import pandas as pd

from roadworthy.core.errors import InputError
from roadworthy.statistics import CONFIDENCE, recovery, share_interval
from roadworthy.statistics.intervals import Array, bounded_interval

ALL = "all worlds"
"""stands for the mean over the worlds, draw by draw"""
_MEASURES = ["whole", "pairs", "spearman"]


@final
@dataclass(frozen=True, eq=False)
class TruthTest:
    """What every benchmark makes of maps whose true order is known, in random draws of every world."""

    scores: pd.DataFrame
    """benchmark, world, draw, map, score; higher is better"""
    orders: Mapping[str, Sequence[Sequence[str]]]
    """world to names of maps, best first; those in one group are equally good"""
    confidence: float = CONFIDENCE
    own_orders: Mapping[tuple[str, str], Sequence[Sequence[str]]] = field(default_factory=dict)
    """(benchmark, world) to another order: where maps are pooled to units, their true order may change"""

    def recoveries(self) -> pd.DataFrame:
        """benchmark, world, draw, whole, pairs, spearman: how far the order was recovered in each draw.

        `whole`: all pairs of maps are in the true order. `pairs`: share of pairs in the true order, a tie counts half.
        `spearman`: correlation with the true ranks.
        """
        rows = [
            (
                *place,
                *recovery(
                    dict(zip(block["map"], block["score"], strict=True)), self._order(str(place[0]), str(place[1]))
                ),
            )
            for place, block in self.scores.groupby(["benchmark", "world", "draw"], sort=False)
        ]
        return pd.DataFrame(rows, columns=["benchmark", "world", "draw", *_MEASURES])

    def _order(self, benchmark: str, world: str) -> Sequence[Sequence[str]]:
        return self.own_orders.get((benchmark, world), self.orders[world])

    def table(self) -> pd.DataFrame:
        """One row per benchmark and world, then one per benchmark for all worlds: means over draws, with intervals.

        The columns are benchmark, world, draws, and whole, pairs and spearman, each with low and high: Wilson's
        interval for the share `whole` of one world, Student's for the rest.
        """
        names = [f"{measure}{end}" for measure in _MEASURES for end in ("", "_low", "_high")]
        rows = [
            (benchmark, world, len(block), *self._intervals(block, str(world)))
            for (benchmark, world), block in self._with_all().groupby(["benchmark", "world"], sort=False)
        ]
        return pd.DataFrame(rows, columns=["benchmark", "world", "draws", *names])

    def differences(self, reference: str = "ROAD") -> pd.DataFrame:
        """By how much each benchmark has more pairs right than the `reference`, in the same draws.

        benchmark, world, draws, difference, low, high. The intervals hold for all rows together (Bonferroni).
        """
        wide = self._with_all().pivot_table(index=["world", "draw"], columns="benchmark", values="pairs", sort=False)
        if reference not in wide:
            raise InputError(f"reference {reference!r}: choose one of {', '.join(map(str, wide))}")
        others = [name for name in dict.fromkeys(self.scores["benchmark"]) if name != reference]
        pairs = [(name, world) for name in others for world in wide.index.get_level_values("world").unique()]
        confidence = 1 - (1 - self.confidence) / max(len(pairs), 1)
        rows = []
        for name, world in pairs:
            values = (wide.loc[world, name] - wide.loc[world, reference]).dropna().to_numpy()
            rows.append((name, world, len(values), values.mean(), *_mean_interval(values, (-1.0, 1.0), confidence)))
        return pd.DataFrame(rows, columns=["benchmark", "world", "draws", "difference", "low", "high"])

    def conclusions(self, reference: str = "ROAD") -> list[str]:
        """For each world, which benchmarks have clearly more or fewer pairs right than the `reference`."""
        table = self.differences(reference)
        return [
            f"{world}: clearly better than {reference}: {_names(block[block['low'] > 0])}; "
            f"clearly worse: {_names(block[block['high'] < 0])}."
            for world, block in table.groupby("world", sort=False)
        ]

    def _with_all(self) -> pd.DataFrame:
        """The recoveries, and their mean over worlds, draw by draw."""
        draws = self.recoveries()
        means = draws.groupby(["benchmark", "draw"], sort=False)[_MEASURES].mean().reset_index().assign(world=ALL)
        return pd.concat([draws, means], ignore_index=True) if len(self.orders) > 1 else draws

    def _intervals(self, block: pd.DataFrame, world: str) -> list[float]:
        numbers: list[float] = []
        for measure in _MEASURES:
            values = block[measure].to_numpy(dtype=float)
            if measure == "whole" and world != ALL:
                interval = share_interval(values[None], self.confidence)
            else:
                interval = _mean_interval(values, (-1.0 if measure == "spearman" else 0.0, 1.0), self.confidence)
            numbers += [float(values.mean()), *interval]
        return numbers


def _mean_interval(values: Array, bounds: tuple[float, float], confidence: float) -> tuple[float, float]:
    """A single draw says nothing about others."""
    return bounded_interval(values[None], bounds, confidence) if len(values) > 1 else bounds


def _names(rows: pd.DataFrame) -> str:
    return " · ".join(rows["benchmark"]) or "none"
