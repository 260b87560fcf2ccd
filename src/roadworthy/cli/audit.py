"""`roadworthy audit`: does the benchmark itself leak the class?"""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table

from roadworthy.cli.output import Jobs, console, resumable, say, warn_all

if TYPE_CHECKING:
    from roadworthy.experiments.audit_run import Audit


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
    for name, table in audit.tables.items():
        if name != "conclusions":
            continue
        shown = Table(title="Does the removed region give the class away?", title_justify="left", title_style="bold")
        for column in ("method", "order", "imputer", "conclusion", "why"):
            shown.add_column(column, overflow="fold")
        for row in table.to_dict("records"):
            style = "red" if row["found"] else None
            cells = (escape(str(row[column])) for column in ("method", "order", "imputer", "conclusion", "why"))
            shown.add_row(*cells, style=style)
        if len(table):
            console.print(shown)
    if "leads" in audit.tables:
        for text in audit.tables["leads"]["text"]:
            say(text)
    say(f"Tables: {folder / 'audit'}")
