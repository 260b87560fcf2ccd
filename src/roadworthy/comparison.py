"""What a comparison answers: tables, a paragraph, a page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from roadworthy import auditing, statistics
from roadworthy.errors import InputError
from roadworthy.inspection import Material, inspect
from roadworthy.keys import Key
from roadworthy.parts import part
from roadworthy.removal import removed_at
from roadworthy.report.page import Picture, Strip, write_page
from roadworthy.report.tables import short_agreement, short_ranking
from roadworthy.store import save_verdicts
from roadworthy.study import Examples
from roadworthy.types import Dot, Imputer, Scores, Verdict

Value = statistics.Value


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Every Verdict of a comparison, and the tables that follow from them. Columns: docs/statistics.md."""

    verdicts: Mapping[Dot, Verdict]
    controls: tuple[str, ...]
    imputers: Mapping[str, Imputer]
    examples: Examples
    classes: tuple[str, ...] = ()
    ties: Mapping[str, statistics.Ties] = field(default_factory=dict)
    """how many pixels of a method's maps share their score"""
    stopping: statistics.Stopping | None = None
    """the rule, where images were taken until the methods were ranked"""
    available: int = 0
    """images that the data set holds, where not all were taken"""
    material: Material | None = None
    """images and maps, for the audit"""
    _audits: dict[auditing.Settings, dict[str, pd.DataFrame]] = field(default_factory=dict, init=False)

    def __repr__(self) -> str:
        methods, dots = len({dot.method for dot in self.verdicts}), len(self.verdicts)
        return f"<Comparison of {methods} methods, {dots} dots; print it for the ranking>"

    def ranking(self, value: Value = "accuracy") -> pd.DataFrame:
        """Method, scores and ranks per order and combined, each with a 95 % interval; best first."""
        if value == "accuracy":
            return self._ranking.copy()
        return statistics.ranking(self.verdicts, self.controls, value, stopping=self.stopping)

    def scores(self, value: Value = "accuracy") -> pd.DataFrame:
        """The ranking as a long table: a row per method and score, each score with its direction."""
        return statistics.scores(self.ranking(value))

    def curves(self) -> pd.DataFrame:
        """Method, order, imputer, judge, fraction, accuracy, probability, and the ends of their intervals."""
        return statistics.curves(self.verdicts)

    def pairs(self, value: Value = "accuracy") -> pd.DataFrame:
        """Every two methods: by how much they differ, how sure that is, how many images it would take."""
        return statistics.pairs(self.verdicts, self.controls, value, stopping=self.stopping)

    def consistency(self, value: Value = "accuracy") -> pd.DataFrame:
        """How far every two settings (judge, order, imputer) agree on the ranking of the methods."""
        return statistics.consistency(self.verdicts, self.controls, value)

    def consistency_matrix(
        self, measure: str = "spearman", pairing: str = "removed", value: Value = "accuracy"
    ) -> pd.DataFrame:
        """The same as a square: a row and a column per setting."""
        return statistics.consistency_matrix(self.consistency(value), measure, pairing)

    def warnings(self) -> pd.DataFrame:
        """What to beware of: kind, method, imputer, judge, text."""
        return self._warnings.copy()

    def per_image(self) -> pd.DataFrame:
        """Every judgement: one row per dot and image."""
        return statistics.per_image(self.verdicts)

    def audit(
        self, fractions: Sequence[float] = auditing.FRACTIONS, reader: str = "small", progress: bool = True
    ) -> pd.DataFrame:
        """Does the benchmark itself cheat? A verdict per method, order and imputer: leak-free, leaks a little, leaks.

        From then on the verdicts stand beside the ranking too. Inverted copies are those of their method, the orders
        exchanged. `audit_tables` holds what the verdicts rest on (docs/audit.md).
        """
        return self.audit_tables(fractions, reader, progress)["verdicts"].copy()

    def audit_tables(
        self, fractions: Sequence[float] = auditing.FRACTIONS, reader: str = "small", progress: bool = True
    ) -> dict[str, pd.DataFrame]:
        """Tables by name: masks, recovery, verdicts; computed once."""
        if self.material is None:
            raise InputError(
                "this comparison holds no maps to audit: compare again, or run `roadworthy audit` on a plan"
            )
        settings = auditing.Settings(tuple(fractions), reader)
        if settings not in self._audits:
            self._audits[settings] = inspect(self.material, settings, progress)
        return self._audits[settings]

    def summary(self) -> str:
        """One paragraph: who won, how sure that is, what to beware of."""
        return statistics.summary(self._ranking, self._pairs, list(self._warnings["text"]), self._stopped, self._level)

    def verdict(self) -> str:
        """The summary without the warnings: who won and how sure that is, a line per judge and imputer."""
        lines = statistics.winners(self._ranking, self._pairs, self._level)
        return "\n".join([*lines, self._stopped] if self._stopped else lines)

    def save(self, folder: str | Path) -> Path:
        """Write every Verdict into a store, one file per dot; `roadworthy export` makes tables of it."""
        save_verdicts(self.verdicts, Path(folder))
        return Path(folder)

    def report(self, path: str | Path) -> Path:
        """Write a self-contained HTML page with ranking, warnings, curves and pictures."""
        settings = {(dot.judge, dot.order, dot.imputer) for dot in self.verdicts}
        several = self._ranking.loc[~self._ranking["control"], "method"].nunique() > 1 and len(settings) > 1
        return write_page(
            Path(path),
            verdict=self.verdict(),
            warnings=list(self._warnings["text"]),
            ranking=short_ranking(self._ranking, self._audited),
            curves=self.curves(),
            agreement=short_agreement(self.consistency()) if several else None,
            controls=self.controls,
            strips=self._strips(),
            audit=self._audited,
        )

    def __str__(self) -> str:
        return f"{short_ranking(self._ranking, self._audited).to_string(index=False)}\n\n{self.summary()}"

    def _repr_html_(self) -> str:
        table = short_ranking(self._ranking, self._audited).to_html(index=False, escape=True, border=0)
        return f"{table}\n<p>{escape(self.summary())}</p>"

    # Tables of the accuracy, which everything that is shown rests on, are computed once.

    @cached_property
    def _ranking(self) -> pd.DataFrame:
        return statistics.ranking(self.verdicts, self.controls, stopping=self.stopping)

    @cached_property
    def _pairs(self) -> pd.DataFrame:
        """Empty where there is one method only."""
        several = len({dot.method for dot in self.verdicts}) > 1
        return self.pairs() if several else pd.DataFrame(columns=statistics.PAIR_COLUMNS)

    @cached_property
    def _warnings(self) -> pd.DataFrame:
        return statistics.warnings(self.verdicts, self._ranking, self._pairs, self.ties, len(self.classes))

    @property
    def _audited(self) -> pd.DataFrame | None:
        """The verdicts of the latest audit, if there was one."""
        return next((tables["verdicts"] for tables in reversed(self._audits.values())), None)

    @property
    def _level(self) -> float:
        return self.stopping.level if self.stopping else statistics.LEVEL

    @property
    def _stopped(self) -> str:
        if not self.stopping:
            return ""
        used = len(next(iter(self.verdicts.values())))
        # Blurred and inverted copies were made after the stop: the rule was not about them.
        copies = tuple(name for name in self.controls if name.endswith((" blurred", " inverted")))
        met = self._pairs[~self._pairs[["method_a", "method_b"]].isin(copies).any(axis=1)]
        left = int(statistics.undecided(met).sum())
        text = f"{used:,} of {self.available:,} images were taken until every pair was decided or surely within "
        text += f"{self.stopping.margin:g}, at {self.stopping.level:.0%} for all pairs at once"
        return f"{text}; still open: {left} of {len(met)} pairs." if left else f"{text}."

    def _strips(self, images: int = 4, pictures: int = 5) -> list[Strip]:
        """A few images, the leading map, and what is left of them when its most relevant pixels go."""
        leader = self._ranking.loc[~self._ranking["control"], "method"].iloc[0]
        scores = self.examples.scores[leader][:images]
        few = self.examples.batch[:images]
        ranks = part("orders", "morf").make()(scores, few.ids, Key(0))
        fractions = sorted({dot.fraction for dot in self.verdicts if dot.fraction > 0})
        shown = [fractions[round(k)] for k in np.linspace(0, len(fractions) - 1, min(pictures, len(fractions)))]
        filled = {
            (name, fraction): imputer(few, removed_at(ranks, fraction), Key(0))
            for name, imputer in self.imputers.items()
            for fraction in shown
        }
        return [
            Strip(
                f"image {int(few.ids[row])}, {self._class_name(int(few.labels[row]))}, filled by: {name}",
                [
                    Picture("original", few.images[row].numpy()),
                    Picture(leader, _heat(scores[row])),
                    *(Picture(f"{fraction:.0%} removed", filled[name, fraction][row].numpy()) for fraction in shown),
                ],
            )
            for row in range(len(few))
            for name in self.imputers
        ]

    def _class_name(self, label: int) -> str:
        return self.classes[label] if label < len(self.classes) else f"class {label}"


def _heat(scores: Scores) -> NDArray[np.float32]:
    """Ranks as grey levels: scores differ too much in scale to be shown as they are. White is most relevant."""
    order = scores.flatten().argsort().argsort().reshape(1, *scores.shape)
    return (order / max(1, scores.numel() - 1)).numpy().astype(np.float32)
