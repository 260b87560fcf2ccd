"""The command `roadworthy audit`: does the benchmark itself cheat?"""

import os
import signal
from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import pandas as pd
import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from roadworthy.audit.mask_information import READERS
from roadworthy.cli.run import keep_plan, kept_plan
from roadworthy.core.errors import InputError, StoreError
from roadworthy.core.progress import Advance, progress_bar
from roadworthy.experiments.auditing import Settings, usual_fractions
from roadworthy.experiments.auditor import QUESTIONS, AuditWork, audit, audit_tables, pending_audit, write_tables
from roadworthy.experiments.executors.local import Local
from roadworthy.experiments.items import Fingerprints
from roadworthy.experiments.plans.plan import Plan
from roadworthy.experiments.plans.reading import read_plan
from roadworthy.experiments.stores.run_directory import Store

console = Console()
audits = typer.Typer()

ReaderName = StrEnum("ReaderName", {name: name for name in READERS})  # type: ignore[misc]
_SMALL = ReaderName("small")
Question = StrEnum("Question", {name: name for name in QUESTIONS})  # type: ignore[misc]


@audits.command("audit")
def audit_plan(
    target: Annotated[Path, typer.Argument(help="A plan, or a store with its plan.", show_default=False)],
    store: Annotated[Path | None, typer.Option(help="Folder for results, where a plan is given.")] = None,
    fraction: Annotated[
        list[float] | None,
        typer.Option(
            help="Shares of removed pixels to look at; if not given, 0.1, 0.5 and 0.9, or three of the plan's."
        ),
    ] = None,
    reader: Annotated[ReaderName, typer.Option(help="Who reads the masks; resnet18 is the paper's.")] = _SMALL,
    only: Annotated[
        list[Question] | None,
        typer.Option(help="What to ask, if not all: what masks tell, whether filled pixels show, γ; may be repeated."),
    ] = None,
    jobs: Annotated[int, typer.Option(min=0, help="Processes; 0 means as many as cores and threads allow.")] = 0,
) -> None:
    """Do the holes give the class away? Measure what the masks tell, and whether the fill shows them.

    Does what is missing, maps included, into the store. PointPredictions are printed; all tables are written beside the results
    as CSV, in place of those of an audit before.

    Example: `roadworthy audit plans/cifar10-cpu.toml --store runs/cifar10-cpu`
    """
    folder = store or target
    plan, prints = _plan_of(target, store)
    settings = Settings(tuple(fraction or usual_fractions(plan.fractions)), reader.value)
    questions = [one.value for one in only] if only else list(QUESTIONS)
    if prints is None or pending_audit(plan, Store(folder), settings, prints, questions).missing:
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        workers = jobs or max(1, (os.cpu_count() or 1) // plan.threads)
        try:
            work = _audit_shown(plan, target if store else None, Store(folder), settings, Local(workers), questions)
        except KeyboardInterrupt:
            console.print(f"stopped; what is done is in {folder}: audit again to go on", highlight=False)
            raise typer.Exit(130) from None
    else:
        work = pending_audit(plan, Store(folder), settings, prints, questions)
    tables = audit_tables(work, Store(folder))
    _show({name: table for name, table in tables.items() if name in questions or len(table)}, folder)
    if work.missing:
        console.print(f"{len(work.missing)} items are missing: roadworthy status {folder}", highlight=False)
        raise typer.Exit(1)


def _plan_of(target: Path, store: Path | None) -> tuple[Plan, Fingerprints | None]:
    """A plan; of a store its own, looking for the data where the run that filled it did."""
    if not target.exists():
        raise InputError(f"{target} does not exist: give a plan, as in plans/, or a store that `roadworthy run` filled")
    if not target.is_dir():
        if store is None:
            raise InputError(f"{target} is a plan: say where its results are, as in --store runs/{target.stem}")
        return read_plan(target), None
    if store is not None:
        raise InputError(f"{target} is a folder and so is --store {store}: give a plan and its store, or a store alone")
    notes = Store(target).manifest()
    if not (target / "plan.toml").exists() or "fingerprints" not in notes:
        raise StoreError(f"{target} is no store with a plan: audit one with `roadworthy audit PLAN --store {target}`")
    return kept_plan(Store(target)), Fingerprints(**notes["fingerprints"])


def _audit_shown(
    plan: Plan, path: Path | None, store: Store, settings: Settings, doer: Local, questions: list[str]
) -> AuditWork:
    with ExitStack() as stack:
        advance: list[Advance] = []

        def on_start(work: AuditWork, complaints: list[str]) -> None:
            for complaint in complaints:
                console.print(f"warning: {complaint}", markup=False, highlight=False)
            if path is not None:
                keep_plan(path, store)
            steps = len(work.missing) + len(work.missing_maps)
            advance.append(stack.enter_context(progress_bar("auditing", steps)))

        return audit(plan, store, settings, doer, lambda event: advance[0](1), on_start, questions)


def _show(tables: dict[str, pd.DataFrame], folder: Path) -> None:
    titles = {"conclusions": "PointPredictions", "leads": "How much of each lead is geometry?"}
    for name, title in titles.items():
        rows = tables.get(name, pd.DataFrame())
        if rows.empty:
            continue
        table = Table(title=title, title_justify="left", title_style="bold", show_header=name == "conclusions")
        shown = rows[["text"]] if name == "leads" else rows.drop(columns="leak")
        for column in shown.columns:
            table.add_column(str(column), no_wrap=column in ("method", "order", "imputer"))
        for row in shown.itertuples(index=False):
            table.add_row(*(escape(str(cell)) for cell in row))
        console.print(table)
    write_tables(tables, folder)
    files = ", ".join(f"{name}.csv" for name in tables)
    text = f"All columns: {files} in {folder / 'audit'}; what they mean: docs/audit.md"
    console.print(text, markup=False, highlight=False)
