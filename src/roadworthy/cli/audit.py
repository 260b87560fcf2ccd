"""`roadworthy audit`: does the benchmark itself leak the class?"""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from roadworthy.cli.output import Jobs, console, resumable, say, warn_all

if TYPE_CHECKING:
    import pandas as pd

    from roadworthy.experiments.audit_run import Audit

_LEADS = 5
"""Sentences about leads that are shown; all are in the table."""


class Classifier(StrEnum):
    small = "small"
    resnet18 = "resnet18"


class Question(StrEnum):
    leakage = "leakage"
    masks = "masks"
    detection = "detection"
    geometry = "geometry"


def audit(
    target: Annotated[Path, typer.Argument(help="Run directory, or a plan together with --store.", show_default=False)],
    store: Annotated[Path | None, typer.Option(help="Run directory of the plan.", show_default=False)] = None,
    fraction: Annotated[
        list[float] | None,
        typer.Option(
            help="Fraction of removed pixels. May be repeated. Default: 0.1, 0.5 and 0.9, or three of the plan's.",
            show_default=False,
        ),
    ] = None,
    classifier: Annotated[
        Classifier, typer.Option(help="Classifier that is trained on masks; the paper uses resnet18.")
    ] = Classifier.small,
    only: Annotated[
        list[Question] | None,
        typer.Option(
            help="Run this part only: leakage through imputation, information in masks, detection of imputed pixels, "
            "geometry. May be repeated."
        ),
    ] = None,
    jobs: Jobs = 0,
) -> None:
    """Audit a benchmark for leakage: do imputed images reveal the class by the mask alone?

    Computes what is missing, including maps. Prints the conclusions and writes all tables as CSV to audit/ in the run
    directory, where they replace those of an earlier audit.

    Example: `roadworthy audit plans/cifar10-cpu.toml --store runs/cifar10-cpu`
    """
    from roadworthy.experiments.audit_items import QUESTIONS, AuditSettings
    from roadworthy.experiments.run import audit_plan, plan_of

    folder = store or target
    plan, directory = plan_of(target, store)
    questions = tuple(question.value for question in only) if only else tuple(QUESTIONS)
    settings = AuditSettings(tuple(fraction), classifier.value, questions) if fraction else None
    with resumable(f"stopped; finished items are in {folder}: audit again to resume"):
        found, missing = audit_plan(plan, directory, settings, classifier.value, questions, jobs, warn_all)
    _show(found, folder)
    if missing:
        say(f"{missing} items are missing: roadworthy status {folder}")
        raise typer.Exit(1)


def _show(audit: "Audit", folder: Path) -> None:
    from roadworthy.report.terminal import show_conclusion, show_leakage

    conclusions, leads = audit.conclusions(), audit.leads()
    if len(conclusions):
        show_leakage(console, conclusions)
    texts = list(leads["text"]) if len(leads) else []
    for text in texts[:_LEADS]:
        say(text)
    if len(texts) > _LEADS:
        say(f"{len(texts) - _LEADS} more in leads.csv.")
    say(f"Tables: {folder / 'audit'}")
    if len(conclusions):
        show_conclusion(console, "", _sentence(conclusions))


def _sentence(conclusions: "pd.DataFrame") -> str:
    """What the leakage table amounts to; never an all-clear."""
    found = conclusions[conclusions["found"].astype(bool)]
    if found.empty:
        return (
            f"No leak was found in {len(conclusions)} settings with {conclusions['images'].max():,} masks each. "
            "That does not prove that there is none."
        )
    worst = found.sort_values("bits").iloc[-1]
    where = f"{worst['method']}, {worst['order']}, imputed with {worst['imputer']}"
    return (
        f"Leaks were found in {len(found)} of {len(conclusions)} settings: there the shape of the removed region gives "
        f"something of the class away. The largest: {where}, {worst['conclusion'].removeprefix('leak found: ')}."
    )
