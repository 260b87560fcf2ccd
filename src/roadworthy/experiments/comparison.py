"""What a comparison answers: a conclusion, tables, a report, an audit."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from roadworthy import statistics
from roadworthy.core.errors import InputError, RoadworthyError
from roadworthy.core.results import Point, Predictions
from roadworthy.core.text import printable
from roadworthy.experiments.audit_items import AuditSettings, default_fractions
from roadworthy.experiments.audit_run import Audit, audit_of, audit_state, run_audit
from roadworthy.experiments.cards import cards
from roadworthy.experiments.conclusion import Basis, Conclusion, conclude
from roadworthy.experiments.examples import class_name, examples
from roadworthy.experiments.executors.in_process import InProcess
from roadworthy.experiments.gallery import gallery, roles_of, setting_of
from roadworthy.experiments.plot import Plot
from roadworthy.experiments.progress import Bar
from roadworthy.experiments.provenance import provenance, runtime_table
from roadworthy.experiments.results import Results, save
from roadworthy.experiments.runner import GroupKey, origin
from roadworthy.experiments.self_test.result import SelfTest, self_test_of
from roadworthy.experiments.source import Source
from roadworthy.experiments.worker import Worker
from roadworthy.report.examples import Example, Gallery
from roadworthy.report.findings import Card, Findings
from roadworthy.report.html.card import first_screen
from roadworthy.report.html.page import write_page
from roadworthy.report.tables import accuracy_text, short_ranking
from roadworthy.statistics import Value

_SHOWN_AS_MATRIX = ("beaten by a control", "not above a control")
"""warnings that the page shows as a table of methods against controls"""


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Every prediction of an experiment, and the tables that follow from them. Columns: docs/statistics.md."""

    results: Results
    source: Source | None = None
    """maps and images, for examples and the audit; None for a saved comparison"""
    group_key: GroupKey = lambda item: item.id
    plan_text: str = ""

    def __repr__(self) -> str:
        methods = len({point.method for point in self.predictions})
        return f"<Comparison of {methods} methods, {len(self.predictions)} points; print it for the ranking>"

    @property
    def predictions(self) -> dict[Point, Predictions]:
        return dict(self.results.predictions)

    @property
    def controls(self) -> tuple[str, ...]:
        return self.results.controls

    @property
    def plot(self) -> Plot:
        """`plot.ranking()`, `.curves()`, `.agreement()`, `.ranks()`, `.examples()`: matplotlib figures."""
        return Plot(self)

    # ── tables ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def ranking(self, value: Value = "accuracy") -> pd.DataFrame:
        """Method, scores and ranks per order and combined, each with an interval; best first."""
        if value == "accuracy":
            return self._ranking.copy()
        results = self.results
        return statistics.ranking(self.predictions, self.controls, value, results.confidence, results.stopping)

    def scores(self, value: Value = "accuracy") -> pd.DataFrame:
        """The ranking as a long table: a row per method and score, each score with its direction."""
        return statistics.scores(self.ranking(value))

    def curves(self) -> pd.DataFrame:
        """Accuracy and probability of every point, with intervals."""
        return self._curves.copy()

    def pairwise(self, value: Value = "accuracy") -> pd.DataFrame:
        """Every two methods: their difference, its interval, and how many images would separate them."""
        return self._pairwise.copy() if value == "accuracy" else self._pairs_by(value)

    def plain_accuracy(self) -> pd.DataFrame:
        """Accuracy before removal, with its interval, by evaluator and imputer."""
        return statistics.plain_accuracy(self.predictions, self.results.confidence, self.results.stopping)

    def agreement(self, value: Value = "accuracy") -> pd.DataFrame:
        """How far every two settings (evaluator, order, imputer) agree on the ranking, with intervals of `spearman`."""
        if value == "accuracy":
            return self._agreement.copy()
        return statistics.agreement_intervals(self.predictions, self.controls, value, self.results.confidence)

    def agreement_matrix(
        self, measure: str = "spearman", pairing: str = "removed", value: Value = "accuracy"
    ) -> pd.DataFrame:
        """The same as a square: a row and a column per setting."""
        return statistics.agreement_matrix(self.agreement(value), measure, pairing)

    def warnings(self) -> pd.DataFrame:
        """Kind, method, imputer, evaluator, text."""
        return self._warnings.copy()

    def per_image(self) -> pd.DataFrame:
        """Every prediction: one row per point and image."""
        return statistics.per_image(self.predictions)

    def per_class(self) -> pd.DataFrame:
        """What removal costs the images of each class, by method and setting."""
        return self._per_class.copy()

    def standings(self) -> dict[statistics.BlockKey, statistics.Standing]:
        """By evaluator and imputer: methods and controls, best first, and the differences between them."""
        return statistics.standings(self._ranking, self._pairs, self.results.copies, self.results.margin)

    def conclusion(self) -> Conclusion:
        """One of four states, a plain sentence, and details: which method to trust, if any (docs/statistics.md)."""
        return self._conclusion

    def self_test(self) -> SelfTest:
        """What this benchmark can see on this model and these images (docs/self-test.md)."""
        if self._self_test is None:
            raise InputError(
                "this comparison has no self-test: compare with self_test=True, or run a plan without "
                "`self_test = false` to its end"
            )
        return self._self_test

    @cached_property
    def _self_test(self) -> SelfTest | None:
        results = self.results
        if results.self_test is None:
            return None
        main = statistics.preferred_block(self._ranking, results.preferred)
        return self_test_of(
            results.self_test, self.predictions, main, results.confidence, results.margin, bool(results.stopping)
        )

    def cards(self, audit: Audit | None = None) -> tuple[Card, ...]:
        """Best method, controls, first place, benchmark: each a question with a short answer."""
        results, compared = self.results, self._several_methods_and_settings
        main = statistics.preferred_block(self._ranking, results.preferred)
        standing = next(one for key, one in self.standings().items() if (key.evaluator, key.imputer) == main)
        agreement = self._agreement if compared else None
        warned = self._warnings
        near_chance = ((warned["kind"] == "near chance") & (warned["evaluator"] == main[0])).any()
        return cards(
            standing,
            agreement,
            audit.tables if audit else {},
            results.confidence,
            bool(near_chance),
            results.copies,
            self._self_test,
        )

    @cached_property
    def _conclusion(self) -> Conclusion:
        results = self.results
        return conclude(
            Basis(
                ranking=self._ranking,
                pairwise=self._pairs,
                accuracy=self.plain_accuracy(),
                copies=results.copies,
                preferred=results.preferred,
                confidence=results.confidence,
                margin=results.margin,
                stopping=results.stopping,
                available=results.available,
                unlabeled=results.unlabeled,
                warnings=self._warnings,
            )
        )

    def leaders(self, most: int = 6) -> list[str]:
        """The leading methods: four of the setting to look at first, and the first of every other setting."""
        ranked = self._ranking[~self._ranking["control"]]
        main = statistics.preferred_block(self._ranking, self.results.preferred)
        in_main = (ranked["evaluator"] == main[0]) & (ranked["imputer"] == main[1])
        firsts = ranked.groupby(["evaluator", "imputer"], sort=False)["method"].first()
        return list(dict.fromkeys([*ranked.loc[in_main, "method"][:4], *firsts]))[:most]

    # ── audit ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def audit(
        self,
        fractions: Sequence[float] | None = None,
        classifier: str = "small",
        questions: Sequence[str] | None = None,
        progress: bool = True,
    ) -> Audit:
        """Does the benchmark itself leak the class? A conclusion per method, order and imputer (docs/audit.md).

        `fractions`: by default 10, 50 and 90 %, or three of those that were evaluated. Inverted copies have the
        conclusions of their method, with the orders exchanged.
        """
        if self.source is None:
            raise InputError(
                "a saved comparison holds no images and maps to audit: compare again, or run a plan and audit that"
            )
        options = {"questions": tuple(questions)} if questions else {}
        settings = AuditSettings(tuple(fractions or self._audit_fractions), classifier, **options)
        state = audit_state(self.source, settings)
        if state.missing:
            self.source.check_all()
            executor = InProcess(Worker(self.source.experiment), raises=True)
            with self.source.store.locked(), Bar("audit", progress) as bar:
                bar.expect(state.missing)
                state = run_audit(self.source, settings, executor, self.group_key, bar)
        return audit_of(self.source, state, self.curves(), self.chance)

    @property
    def _audit_fractions(self) -> tuple[float, ...]:
        return default_fractions(sorted({point.fraction for point in self.predictions}))

    @property
    def chance(self) -> float:
        """The accuracy of guessing among the classes."""
        labels = next(iter(self.predictions.values())).labels
        return 1 / max(2, len(self.results.classes), len(np.unique(labels)))

    # ── output ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def save(self, folder: str | Path) -> Path:
        """Write every prediction into a new run directory, which `rw.load` and the commands read."""
        save(self.results, Path(folder), origin())
        return Path(folder)

    def report(self, path: str | Path, audit: Audit | None = None) -> Path:
        """Write a self-contained HTML page (docs/report.md), with the tables of an `audit` if one is given."""
        return write_page(Path(path), self.findings(audit))

    def log(self, run: Any, step: int | None = None) -> None:
        """Log scores, tables and the page to a run of W&B or MLflow, a SummaryWriter, or into a folder for DVC.

        `run`: wandb.init(), `mlflow` or a run of it, TensorBoard's SummaryWriter, a logger of Lightning, or a path:
        a folder for metrics.json, curves.csv and report.html (docs/bridges.md).
        """
        from roadworthy.experiments.integrations import log

        log(self, run, step)

    def findings(self, audit: Audit | None = None) -> Findings:
        """Everything that the page shows, as tables."""
        shown, strips, no_examples = self._pictures()
        first = self._first_screen(audit)
        return replace(
            first,
            curves=self.curves(),
            agreement=self._agreement if self._several_methods_and_settings else None,
            chance=self.chance,
            gallery=shown,
            examples=strips,
            no_examples=no_examples,
            classes=self.per_class(),
            facts={**first.facts, **provenance(self.results.manifest), **self._left_out(strips)},
            missing=self.results.missing,
            runtimes=runtime_table(self.results.runtimes) if self.plan_text else None,
            plan=self.plan_text,
        )

    def _first_screen(self, audit: Audit | None = None) -> Findings:
        """What page and notebook open with."""
        results, conclusion, warnings = self.results, self.conclusion(), self._warnings
        return Findings(
            state=conclusion.state,
            conclusion=conclusion.sentence,
            details=conclusion.details,
            cards=self.cards(audit),
            confidence=results.confidence,
            margin=results.margin,
            ranking=self._ranking,
            pairwise=self._pairs,
            controls=self.controls,
            copies=results.copies,
            preferred=results.preferred,
            unlabeled=results.unlabeled,
            debiased=results.linear_imputers,
            fixed=results.fixed_imputers,
            warnings=list(warnings.loc[~warnings["kind"].isin(_SHOWN_AS_MATRIX), "text"]),
            facts={
                **results.about,
                **self._size,
                "Accuracy before removal": self._accuracy,
                "Date": provenance(results.manifest)["Date"],
            },
            audit=audit.tables if audit else {},
            self_test=self._self_test.tables if self._self_test else {},
            self_test_sentences=self._self_test.sentences if self._self_test else (),
        )

    @property
    def _accuracy(self) -> str:
        """The plain accuracy of every evaluator, in words."""
        return accuracy_text(self.plain_accuracy(), self.results.unlabeled)

    def __str__(self) -> str:
        """It ends with the conclusion, which is what one sees first on a terminal."""
        table = short_ranking(self._ranking, self.standings()).to_string(index=False)
        warnings = [f"Warning: {text}" for text in self._warnings["text"]]
        tested = [f"Self-test {self._self_test.state}: {self._self_test.summary}."] if self._self_test else []
        lines = [f"Accuracy before removal: {self._accuracy}", *tested, *warnings]
        parts = [table, "\n".join(lines), str(self.conclusion())]
        return printable("\n\n".join(parts))

    def _repr_html_(self) -> str:
        """The first screen of the page, without its pictures."""
        return first_screen(self._first_screen())

    def gallery(self) -> Gallery:
        """Images with the model's answers, as the best and the worst method leave them; empty without images."""
        return self._pictures()[0]

    def _pictures(self) -> tuple[Gallery, list[Example], str]:
        """Images with answers, one image with every imputer; or why there are none."""
        if self.source is None:
            return Gallery(), [], "a saved comparison holds no images"
        evaluator, imputer = statistics.preferred_block(self._ranking, self.results.preferred)
        block = self._ranking[(self._ranking["evaluator"] == evaluator) & (self._ranking["imputer"] == imputer)]
        try:
            imputers = list(dict.fromkeys(point.imputer for point in self.predictions))
            leaders = self.leaders() or block["method"].tolist()[:1]
            strips = examples(self.source, leaders, [imputer, *imputers], most_fractions=5, images=1)
            shown = next(iter(strips[0].imputed))[2]  # the main imputer, unless it is code of the plan
            setting = setting_of(self.predictions, evaluator, shown)
            roles, results = roles_of(block, self.results.copies), self.results
            shown_images = gallery(
                self.source, self.predictions, setting, roles, results.classes, results.target, results.unlabeled
            )
            return shown_images, strips, ""
        except RoadworthyError as error:
            return Gallery(), [], str(error)

    def _left_out(self, pictures: Sequence[Example]) -> dict[str, str]:
        names = self.source.parts.left_out if self.source is not None and pictures else ()
        return {"Examples without": f"{', '.join(names)} (code of the plan, not run to read results)"} if names else {}

    # ── tables that everything shown rests on ────────────────────────────────────────────────────────────────────────

    @cached_property
    def _ranking(self) -> pd.DataFrame:
        results = self.results
        return statistics.ranking(
            self.predictions, self.controls, confidence=results.confidence, stopping=results.stopping
        )

    @cached_property
    def _curves(self) -> pd.DataFrame:
        return statistics.curves(self.predictions, self.results.confidence)

    @cached_property
    def _per_class(self) -> pd.DataFrame:
        table = statistics.per_class(self.predictions, self.results.confidence)
        results = self.results
        names = {
            label: class_name(label, results.classes, results.unlabeled) for label in table["label"].unique().tolist()
        }
        return table.assign(name=table["label"].map(names))

    @cached_property
    def _agreement(self) -> pd.DataFrame:
        return statistics.agreement_intervals(self.predictions, self.controls, confidence=self.results.confidence)

    @property
    def _several_methods_and_settings(self) -> bool:
        methods = {point.method for point in self.predictions if point.method not in self.controls}
        settings = {(point.evaluator, point.order, point.imputer) for point in self.predictions}
        return len(methods) > 1 and len(settings) > 1

    @cached_property
    def _pairs(self) -> pd.DataFrame:
        """Empty where no setting has two methods to compare."""
        blocks = [block for _, block in self._ranking.groupby(["evaluator", "imputer"])]
        several = any(block[statistics.leading_score(block)].notna().sum() > 1 for block in blocks)
        return self._pairwise if several else pd.DataFrame(columns=statistics.PAIRWISE_COLUMNS)

    @cached_property
    def _pairwise(self) -> pd.DataFrame:
        return self._pairs_by("accuracy")

    def _pairs_by(self, value: Value) -> pd.DataFrame:
        results = self.results
        return statistics.pairwise(
            self.predictions, self.controls, value, results.confidence, results.stopping, results.margin
        )

    @cached_property
    def _warnings(self) -> pd.DataFrame:
        results = self.results
        table = statistics.warnings(
            self.predictions,
            self._ranking,
            self._pairs,
            results.ties,
            len(results.classes),
            results.copies,
            results.target,
            results.confidence,
            results.stopping,
        )
        texts = [f"{_capitalized(text)}." for text in results.noted]
        noted = pd.DataFrame({"kind": "noted before the run", "text": texts}, columns=table.columns).fillna("")
        doubts = [
            {**dict.fromkeys(table.columns, ""), "kind": "self-test", **doubt._asdict()}
            for doubt in (self._self_test.doubts if self._self_test else ())
        ]
        tables = [noted, table, pd.DataFrame(doubts, columns=table.columns)]
        return pd.concat([one for one in tables if len(one)] or [table], ignore_index=True)

    @property
    def _size(self) -> dict[str, str]:
        images, available = len(next(iter(self.predictions.values()))), self.results.available
        return {"Images": f"{images:,} of {available:,}" if available > images else f"{images:,}"}


def _capitalized(text: str) -> str:
    """A sentence; the name of a method, which a colon follows, stays as it is.

    >>> _capitalized("the model is slow"), _capitalized("m: maps are small")
    ('The model is slow', 'm: maps are small')
    """
    return text if text.partition(" ")[0].endswith(":") else f"{text[:1].upper()}{text[1:]}"
