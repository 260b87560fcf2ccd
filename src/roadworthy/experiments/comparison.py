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
from roadworthy.audit.debiasing import linear_leads
from roadworthy.core.errors import InputError
from roadworthy.core.results import Point, Predictions
from roadworthy.core.types import Imputer
from roadworthy.experiments import auditing
from roadworthy.experiments.illustrations import class_name, stories
from roadworthy.experiments.inspection import Material, inspect
from roadworthy.experiments.runner import origin
from roadworthy.experiments.stores.run_directory import save_predictions
from roadworthy.experiments.study import Examples
from roadworthy.report.findings import Findings
from roadworthy.report.html.page import write_page
from roadworthy.report.html.strips import Example
from roadworthy.report.tables import day, short_ranking

Value = statistics.Value


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Every Predictions of a comparison, and the tables that follow from them. Columns: docs/statistics.md."""

    predictions: Mapping[Point, Predictions]
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
        methods, points = len({point.method for point in self.predictions}), len(self.predictions)
        return f"<Comparison of {methods} methods, {points} points; print it for the ranking>"

    def ranking(self, value: Value = "accuracy") -> pd.DataFrame:
        """Method, scores and ranks per order and combined, each with a 95 % interval; best first."""
        if value == "accuracy":
            return self._ranking.copy()
        return statistics.ranking(self.predictions, self.controls, value, stopping=self.stopping)

    def scores(self, value: Value = "accuracy") -> pd.DataFrame:
        """The ranking as a long table: a row per method and score, each score with its direction."""
        return statistics.scores(self.ranking(value))

    def curves(self) -> pd.DataFrame:
        """Method, order, imputer, evaluator, fraction, accuracy, probability, and the ends of their intervals."""
        return statistics.curves(self.predictions)

    def pairs(self, value: Value = "accuracy") -> pd.DataFrame:
        """Every two methods: by how much they differ, how sure that is, how many images it would take."""
        return statistics.pairs(self.predictions, self.controls, value, stopping=self.stopping)

    def agreement(self, value: Value = "accuracy") -> pd.DataFrame:
        """How far every two settings (evaluator, order, imputer) agree on the ranking of the methods."""
        return statistics.agreement(self.predictions, self.controls, value)

    def agreement_matrix(
        self, measure: str = "spearman", pairing: str = "removed", value: Value = "accuracy"
    ) -> pd.DataFrame:
        """The same as a square: a row and a column per setting."""
        return statistics.agreement_matrix(self.agreement(value), measure, pairing)

    def warnings(self) -> pd.DataFrame:
        """What to beware of: kind, method, imputer, evaluator, text."""
        return self._warnings.copy()

    def per_image(self) -> pd.DataFrame:
        """Every prediction: one row per point and image."""
        return statistics.per_image(self.predictions)

    def audit(
        self, fractions: Sequence[float] | None = None, reader: str = "small", progress: bool = True
    ) -> pd.DataFrame:
        """Does the benchmark itself cheat? A prediction per method, order and imputer: leak-free, leaks a little, leaks.

        From then on the predictions stand beside the ranking too. Inverted copies are those of their method, the orders
        exchanged. `audit_tables` holds what the predictions rest on (docs/audit.md).
        """
        predictions = self.audit_tables(fractions, reader, progress)["predictions"]
        # Where a terminal is narrow pandas leaves out the columns in the middle: those that one can do without.
        return predictions[["method", "order", "why", "leak", "imputer", "prediction"]].copy()

    def audit_tables(
        self, fractions: Sequence[float] | None = None, reader: str = "small", progress: bool = True
    ) -> dict[str, pd.DataFrame]:
        """Tables by name: masks, recovery, geometry, leads, predictions; computed once.

        `fractions`: 10, 50 and 90 %, or three of those that were evaluated if these were not.
        """
        if self.material is None:
            raise InputError(
                "this comparison holds no maps to audit: compare again, or run `roadworthy audit` on a plan"
            )
        evaluated = sorted({point.fraction for point in self.predictions})
        settings = auditing.Settings(tuple(fractions or auditing.usual_fractions(evaluated)), reader)
        if settings not in self._audits:
            tables = inspect(self.material, settings, progress)
            leads = linear_leads(self.curves(), tables["geometry"], self._chance)
            self._audits[settings] = {**tables, "leads": leads}
        return self._audits[settings]

    def per_class(self) -> pd.DataFrame:
        """What removal costs the images of each class, by method and setting."""
        table = statistics.per_class(self.predictions)
        guessed = self.examples is not None and bool(self.examples.guessed.all())
        names = {label: class_name(label, self.classes, guessed) for label in table["label"].unique().tolist()}
        return table.assign(name=table["label"].map(names))

    def summary(self) -> str:
        """One paragraph: who won, how sure that is, what to beware of."""
        return statistics.summary(self._ranking, self._pairs, list(self._warnings["text"]), self._stopped, self._level)

    def prediction(self) -> str:
        """The summary without the warnings: who won and how sure that is, a line per evaluator and imputer."""
        lines = statistics.winners(self._ranking, self._pairs, self._level)
        return "\n".join([*lines, self._stopped] if self._stopped else lines)

    def save(self, folder: str | Path) -> Path:
        """Write every Predictions into a store, one file per point; `roadworthy export` makes tables of it."""
        note = {"controls": self.controls, "classes": self.classes, "about": dict(self.about), **origin()}
        save_predictions(self.predictions, Path(folder), note)
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
        settings = {(point.evaluator, point.order, point.imputer) for point in self.predictions}
        return Findings(
            conclusion=statistics.headline(ranking, self._pairs, self._level),
            details=self.prediction().splitlines(),
            ranking=ranking,
            curves=self.curves(),
            agreement=self.agreement() if asked > 1 and len(settings) > 1 else None,
            controls=self.controls,
            stories=self._stories(),
            no_pictures="the images are not at hand",
            classes=self.per_class(),
            warnings=list(self._warnings["text"]),
            facts={**self.about, **self._size},
        )

    def leaders(self, most: int = 6) -> list[str]:
        """The methods that lead: the first four where the prediction looks first, and the first of every other setting."""
        asked = self._ranking[~self._ranking["control"]]
        main = (asked["evaluator"] + asked["imputer"]) == "".join(statistics.main_block(self._ranking))
        firsts = asked.groupby(["evaluator", "imputer"], sort=False)["method"].first()
        return list(dict.fromkeys([*asked.loc[main, "method"][:4], *firsts]))[:most]

    def __str__(self) -> str:
        return f"{self._short.to_string(index=False)}\n\n{self.summary()}"

    def _repr_html_(self) -> str:
        table = self._short.to_html(index=False, escape=True, border=0)
        return f"{table}\n<p>{escape(self.summary())}</p>"

    # Tables of the accuracy, which everything that is shown rests on, are computed once.

    @cached_property
    def _ranking(self) -> pd.DataFrame:
        return statistics.ranking(self.predictions, self.controls, stopping=self.stopping)

    @cached_property
    def _pairs(self) -> pd.DataFrame:
        """Empty where no setting has two methods that can be compared."""
        blocks = [block for _, block in self._ranking.groupby(["evaluator", "imputer"])]
        several = any(block[statistics.lead_of(block)].notna().sum() > 1 for block in blocks)
        return self.pairs() if several else pd.DataFrame(columns=statistics.PAIR_COLUMNS)

    @cached_property
    def _warnings(self) -> pd.DataFrame:
        return statistics.warnings(self.predictions, self._ranking, self._pairs, self.ties, len(self.classes))

    @property
    def _chance(self) -> float:
        return 1 / max(2, len(self.classes), len(np.unique(next(iter(self.predictions.values())).labels)))

    @property
    def _short(self) -> pd.DataFrame:
        return short_ranking(self._ranking, self._audited.get("predictions"))

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
        used = len(next(iter(self.predictions.values())))
        # Blurred and inverted copies were made after the stop: the rule was not about them.
        copies = tuple(name for name in self.controls if name.endswith((" blurred", " inverted")))
        met = self._pairs[~self._pairs[["method_a", "method_b"]].isin(copies).any(axis=1)]
        left = int(statistics.undecided(met).sum())
        text = f"{used:,} of {self.available:,} images were taken until every pair was decided or surely within "
        text += f"{self.stopping.margin:g}, at {self.stopping.level:.0%} for all pairs at once"
        return f"{text}; still open: {left} of {len(met)} pairs." if left else f"{text}."

    @property
    def _size(self) -> dict[str, str]:
        images = len(next(iter(self.predictions.values())))
        return {"Images": f"{images:,} of {self.available:,}" if self.available > images else f"{images:,}"}

    def _stories(self, pictures: int = 9) -> list[Example]:
        if self.examples is None:
            return []
        fractions = sorted({point.fraction for point in self.predictions if point.fraction > 0})
        shown = [fractions[round(k)] for k in np.linspace(0, len(fractions) - 1, min(pictures, len(fractions)))]
        orders = list(dict.fromkeys(point.order for point in self.predictions))
        leaders = [name for name in self.leaders() if name in self.examples.maps]
        return stories(self.examples, leaders, self.imputers, orders, shown, self.classes) if leaders else []
