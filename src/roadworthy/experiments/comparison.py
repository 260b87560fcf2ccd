"""What a comparison answers: tables, a paragraph, a page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from html import escape
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd

from roadworthy import statistics
from roadworthy.core.errors import InputError
from roadworthy.core.results import Dot, Verdict
from roadworthy.core.types import Imputer
from roadworthy.experiments import auditing
from roadworthy.experiments.illustrations import class_name, stories
from roadworthy.experiments.inspection import Material, inspect
from roadworthy.experiments.runner import origin
from roadworthy.experiments.stores.run_directory import save_verdicts
from roadworthy.experiments.study import Examples
from roadworthy.report.findings import Findings
from roadworthy.report.html.page import write_page
from roadworthy.report.html.strips import Story
from roadworthy.report.tables import day, short_ranking

Value = statistics.Value


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Every Verdict of a comparison, and the tables that follow from them. Columns: docs/statistics.md."""

    verdicts: Mapping[Dot, Verdict]
    controls: tuple[str, ...]
    imputers: Mapping[str, Imputer]
    examples: Examples | None
    """None where the images are not at hand"""
    classes: tuple[str, ...] = ()
    ties: Mapping[str, statistics.Ties] = field(default_factory=dict)
    """how many pixels of a method's maps share their score"""
    stopping: statistics.Stopping | None = None
    """the rule, where images were taken until the methods were ranked"""
    available: int = 0
    """images that the data set holds, where not all were taken"""
    material: Material | None = None
    """images and maps, for the audit"""
    about: Mapping[str, str] = field(default_factory=dict)
    """the model and the data, for people"""
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
        self, fractions: Sequence[float] | None = None, reader: str = "small", progress: bool = True
    ) -> pd.DataFrame:
        """Does the benchmark itself cheat? A verdict per method, order and imputer: leak-free, leaks a little, leaks.

        From then on the verdicts stand beside the ranking too. Inverted copies are those of their method, the orders
        exchanged. `audit_tables` holds what the verdicts rest on (docs/audit.md).
        """
        verdicts = self.audit_tables(fractions, reader, progress)["verdicts"]
        # Where a terminal is narrow pandas leaves out the columns in the middle: those that one can do without.
        return verdicts[["method", "order", "why", "leak", "imputer", "verdict"]].copy()

    def audit_tables(
        self, fractions: Sequence[float] | None = None, reader: str = "small", progress: bool = True
    ) -> dict[str, pd.DataFrame]:
        """Tables by name: masks, recovery, geometry, leads, verdicts; computed once.

        `fractions`: 10, 50 and 90 %, or three of those that were judged if these were not.
        """
        if self.material is None:
            raise InputError(
                "this comparison holds no maps to audit: compare again, or run `roadworthy audit` on a plan"
            )
        judged = sorted({dot.fraction for dot in self.verdicts})
        settings = auditing.Settings(tuple(fractions or auditing.usual_fractions(judged)), reader)
        if settings not in self._audits:
            tables = inspect(self.material, settings, progress)
            leads = statistics.linear_leads(self.curves(), tables["geometry"], self._chance)
            self._audits[settings] = {**tables, "leads": leads}
        return self._audits[settings]

    def per_class(self) -> pd.DataFrame:
        """What removal costs the images of each class, by method and setting."""
        table = statistics.per_class(self.verdicts)
        guessed = self.examples is not None and bool(self.examples.guessed.all())
        names = {label: class_name(label, self.classes, guessed) for label in table["label"].unique().tolist()}
        return table.assign(name=table["label"].map(names))

    def summary(self) -> str:
        """One paragraph: who won, how sure that is, what to beware of."""
        return statistics.summary(self._ranking, self._pairs, list(self._warnings["text"]), self._stopped, self._level)

    def verdict(self) -> str:
        """The summary without the warnings: who won and how sure that is, a line per judge and imputer."""
        lines = statistics.winners(self._ranking, self._pairs, self._level)
        return "\n".join([*lines, self._stopped] if self._stopped else lines)

    def save(self, folder: str | Path) -> Path:
        """Write every Verdict into a store, one file per dot; `roadworthy export` makes tables of it."""
        note = {"controls": self.controls, "classes": self.classes, "about": dict(self.about), **origin()}
        save_verdicts(self.verdicts, Path(folder), note)
        return Path(folder)

    def report(self, path: str | Path, audits: Mapping[str, pd.DataFrame] | None = None) -> Path:
        """Write a self-contained HTML page: docs/report.md.

        `audits`: tables of a leakage audit; those of the latest `audit` if none are given.
        """
        made = {"Roadworthy": version("roadworthy"), "Date": day(datetime.now(UTC))}
        found = self.findings()
        tables = self._audited if audits is None else audits
        return write_page(Path(path), replace(found, facts={**found.facts, **made}, audits=tables))

    def findings(self) -> Findings:
        """What a page tells, as tables."""
        ranking, asked = self._ranking, self._ranking.loc[~self._ranking["control"], "method"].nunique()
        settings = {(dot.judge, dot.order, dot.imputer) for dot in self.verdicts}
        return Findings(
            verdict=statistics.headline(ranking, self._pairs, self._level),
            details=self.verdict().splitlines(),
            ranking=ranking,
            curves=self.curves(),
            agreement=self.consistency() if asked > 1 and len(settings) > 1 else None,
            controls=self.controls,
            stories=self._stories(),
            no_pictures="the images are not at hand",
            classes=self.per_class(),
            warnings=list(self._warnings["text"]),
            facts={**self.about, **self._size},
        )

    def leaders(self, most: int = 6) -> list[str]:
        """The methods that lead: the first four where the verdict looks first, and the first of every other setting."""
        asked = self._ranking[~self._ranking["control"]]
        main = (asked["judge"] + asked["imputer"]) == "".join(statistics.main_block(self._ranking))
        firsts = asked.groupby(["judge", "imputer"], sort=False)["method"].first()
        return list(dict.fromkeys([*asked.loc[main, "method"][:4], *firsts]))[:most]

    def __str__(self) -> str:
        return f"{self._short.to_string(index=False)}\n\n{self.summary()}"

    def _repr_html_(self) -> str:
        table = self._short.to_html(index=False, escape=True, border=0)
        return f"{table}\n<p>{escape(self.summary())}</p>"

    # Tables of the accuracy, which everything that is shown rests on, are computed once.

    @cached_property
    def _ranking(self) -> pd.DataFrame:
        return statistics.ranking(self.verdicts, self.controls, stopping=self.stopping)

    @cached_property
    def _pairs(self) -> pd.DataFrame:
        """Empty where no setting has two methods that can be compared."""
        blocks = [block for _, block in self._ranking.groupby(["judge", "imputer"])]
        several = any(block[statistics.lead_of(block)].notna().sum() > 1 for block in blocks)
        return self.pairs() if several else pd.DataFrame(columns=statistics.PAIR_COLUMNS)

    @cached_property
    def _warnings(self) -> pd.DataFrame:
        return statistics.warnings(self.verdicts, self._ranking, self._pairs, self.ties, len(self.classes))

    @property
    def _chance(self) -> float:
        return 1 / max(2, len(self.classes), len(np.unique(next(iter(self.verdicts.values())).labels)))

    @property
    def _short(self) -> pd.DataFrame:
        return short_ranking(self._ranking, self._audited.get("verdicts"))

    @property
    def _audited(self) -> Mapping[str, pd.DataFrame]:
        """The tables of the latest audit, if there was one."""
        return next(reversed(self._audits.values()), {})

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

    @property
    def _size(self) -> dict[str, str]:
        images = len(next(iter(self.verdicts.values())))
        return {"Images": f"{images:,} of {self.available:,}" if self.available > images else f"{images:,}"}

    def _stories(self, pictures: int = 9) -> list[Story]:
        if self.examples is None:
            return []
        fractions = sorted({dot.fraction for dot in self.verdicts if dot.fraction > 0})
        shown = [fractions[round(k)] for k in np.linspace(0, len(fractions) - 1, min(pictures, len(fractions)))]
        orders = list(dict.fromkeys(dot.order for dot in self.verdicts))
        leaders = [name for name in self.leaders() if name in self.examples.scores]
        return stories(self.examples, leaders, self.imputers, orders, shown, self.classes) if leaders else []
