"""The lab book's commands: check a plan, run it, look at a store, take tables out, bring stores together."""

import io
import os
import signal
from contextlib import ExitStack
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import pandas as pd
import typer
from rich.console import Console

from roadworthy import statistics
from roadworthy.cli.dry_run import show_forecast, span
from roadworthy.core.errors import InputError, MissingExtraError, StoreError
from roadworthy.core.files import write_atomically
from roadworthy.core.progress import Advance, progress_bar
from roadworthy.core.results import Point, Predictions
from roadworthy.experiments import runner
from roadworthy.experiments.executors.local import Local
from roadworthy.experiments.executors.ray import Ray
from roadworthy.experiments.items import Fingerprints
from roadworthy.experiments.plans.plan import Plan
from roadworthy.experiments.plans.reading import read_plan
from roadworthy.experiments.stored import saved_findings, stored_findings
from roadworthy.experiments.stores.run_directory import Store, merge_stores
from roadworthy.report.html.page import write_page

console = Console()
lab = typer.Typer()
plans = typer.Typer(no_args_is_help=True, help="Plans of work.")
lab.add_typer(plans, name="plan")

PlanPath = Annotated[Path, typer.Argument(help="A plan in TOML; copy one from plans/.", show_default=False)]
StorePath = Annotated[Path, typer.Argument(help="The store, as given to run.", show_default=False)]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")]


class ExecutorName(StrEnum):
    local = "local"
    ray = "ray"


@plans.command("check")
def check(plan: PlanPath) -> None:
    """Check a plan and say how much work it means, from a few images timed here.

    It is what `roadworthy run PLAN --dry-run` shows. Example: `roadworthy plan check plans/cifar10-cpu.toml`
    """
    show_forecast(read_plan(plan), str(plan), Store(_place(plan)))


@lab.command("run")
def run_plan(
    plan: PlanPath,
    store: Annotated[
        Path | None,
        typer.Option(help="Folder for results; it is made, or gone on with. If not given: runs/NAME-OF-PLAN."),
    ] = None,
    executor: Annotated[ExecutorName, typer.Option(help="Who does the work.")] = ExecutorName.local,
    address: Annotated[str, typer.Option(help="The Ray cluster; local starts one.")] = "local",
    jobs: Annotated[int, typer.Option(min=0, help="Processes; 0 means as many as cores and threads allow.")] = 0,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the grid and its estimated cost, and do nothing.")
    ] = False,
) -> None:
    """Do what is missing of a plan. Stop it at any moment and run it again: nothing is lost but the item in hand.

    Example: `roadworthy run plans/cifar10-cpu.toml --store runs/cifar10-cpu`; what would it cost? `--dry-run`
    """
    read, store = read_plan(plan), store or _place(plan)
    if dry_run:
        show_forecast(read, str(plan), Store(store))
        return
    workers = jobs or max(1, (os.cpu_count() or 1) // read.threads)
    doer = Ray(address) if executor is ExecutorName.ray else Local(workers)
    signal.signal(signal.SIGTERM, _stop)
    try:
        left = _run_shown(read, plan, Store(store), doer)
    except KeyboardInterrupt:
        console.print(f"stopped; what is done is in {store}: run again to go on", highlight=False)
        raise typer.Exit(130) from None
    failures = Store(store).failures()
    console.print(f"{left.total - left.missing:,} of {left.total:,} items are in {store}", highlight=False)
    if failures:
        console.print(f"{len(failures)} failed: roadworthy status {store}", highlight=False)
        raise typer.Exit(1)


def _place(plan: Path) -> Path:
    return Path("runs") / plan.stem


def _run_shown(read: Plan, path: Path, store: Store, doer: Local | Ray) -> runner.Work:
    with ExitStack() as stack:
        advance: list[Advance] = []

        def on_start(work: runner.Work, complaints: list[str]) -> None:
            for complaint in complaints:
                console.print(f"warning: {complaint}", markup=False, highlight=False)
            keep_plan(path, store)
            advance.append(stack.enter_context(progress_bar("items", work.missing)))

        return runner.run(read, store, doer, lambda event: advance[0](1), on_start)


def keep_plan(path: Path, store: Store) -> None:
    """A store holds the plan that filled it last."""
    kept = store.root / "plan.toml"
    if kept.exists() and kept.read_bytes() != path.read_bytes():
        console.print(
            f"warning: {store.root} was filled by another plan; status and export follow this one from now on. "
            "The other's results stay: run that plan again to see them",
            markup=False,
            highlight=False,
        )
    write_atomically(kept, path.read_bytes())


def _stop(*_: object) -> None:
    raise KeyboardInterrupt


def _work_of(folder: Path) -> tuple[Store, runner.Work]:
    """A store's own plan and what of it is missing, without a look at the data."""
    store = Store(folder)
    if not (folder / "plan.toml").exists() or "fingerprints" not in store.manifest():
        raise StoreError(f"{folder} is no store: fill one with `roadworthy run PLAN --store {folder}`")
    return store, runner.pending(kept_plan(store), store, Fingerprints(**store.manifest()["fingerprints"]))


def kept_plan(store: Store) -> Plan:
    """A store's copy of its plan, whose paths start where the run that filled it found them."""
    plan = read_plan(store.root / "plan.toml")
    return replace(plan, folder=Path(store.manifest().get("folder", plan.folder)))


def opened(folder: Path) -> tuple[Store, runner.Work | None]:
    """A store with the work of its plan; a saved comparison has no plan."""
    saved = not (folder / "plan.toml").exists() and Store(folder).ids("trial")
    return (Store(folder), None) if saved else _work_of(folder)


def _verdicts_of(folder: Path) -> tuple[dict[Point, Predictions], int]:
    """What a store holds of its plan and how many points are missing; without a plan (a saved comparison), all."""
    store, left = opened(folder)
    return (runner.predictions(left, store), len(left.missing_trials)) if left else (store.predictions(), 0)


@lab.command("status")
def status(folder: StorePath) -> None:
    """What is done, pending and failed, and how long the rest will take.

    Example: `roadworthy status runs/cifar10-cpu`
    """
    store, left = _work_of(folder)
    failures, durations = store.failures(), store.manifest().get("durations", {})
    console.print(
        f"done {left.total - left.missing:,}  pending {left.missing:,}  failed {len(failures):,}", highlight=False
    )
    if left.missing and durations:
        seconds = sum(durations.values()) / len(durations) * left.missing
        console.print(f"about {span(seconds)} of computing left", highlight=False)
    rows = runner.runtimes(left, store)
    base = next((f"{row.evaluator} · {row.imputer}" for row in rows if row.relative == 1), "")
    for row in rows:
        text = (
            f"{row.evaluator} · {row.imputer}: {row.seconds:.2f} s per curve ({row.relative:.0%} of the cost of {base})"
        )
        console.print(text, markup=False, highlight=False)
    for failure in failures.values():
        console.print(f"failed: {failure['label']}\n{failure['traceback']}", markup=False, highlight=False)


@lab.command("export")
def export(
    folder: StorePath,
    file: Annotated[Path, typer.Argument(help="FILE.csv, .parquet or .json", show_default=False)],
    dry_run: DryRun = False,
) -> None:
    """Write every prediction, one row per point and image, to a table.

    Example: `roadworthy export runs/cifar10-cpu predictions.csv`
    """
    check_table(file)
    predictions, missing = _verdicts_of(folder)
    rows = statistics.per_image(predictions)
    gaps = f"; {missing:,} points are missing" if missing else ""
    console.print(f"{len(rows):,} rows {'would be' if dry_run else 'are'} in {file}{gaps}", highlight=False)
    if not dry_run:
        write_table(rows, file)


_WRITERS = {".csv": "to_csv", ".parquet": "to_parquet", ".json": "to_json"}


def check_table(file: Path) -> None:
    """Before long work: can a table be written so?"""
    if file.suffix not in _WRITERS:
        raise InputError(f"{file}: tables are written as {', '.join(_WRITERS)}")


def write_table(table: pd.DataFrame, file: Path) -> None:
    """As CSV, Parquet or JSON records, by the file's suffix."""
    check_table(file)
    options = {"orient": "records"} if file.suffix == ".json" else {"index": False}
    buffer = io.BytesIO()
    try:
        getattr(table, _WRITERS[file.suffix])(buffer, **options)
    except ImportError as error:
        raise MissingExtraError("Parquet needs pyarrow: pip install 'roadworthy[parquet]'") from error
    write_atomically(file, buffer.getvalue())


@lab.command("report")
def report(
    folder: StorePath,
    out: Annotated[Path, typer.Option("--out", "-o", help="The page to write.")] = Path("report.html"),
) -> None:
    """Write a page to look at: ranking, curves, agreement, pictures, and what is missing, in one HTML file.

    Example: `roadworthy report runs/cifar10-cpu -o report.html`
    """
    store, work = opened(folder)
    with progress_bar("making the page", None):
        page = write_page(out, saved_findings(store) if work is None else stored_findings(store, work))
    console.print(f"Page: {page}   ({page.stat().st_size / 1e6:.1f} MB)", markup=False, highlight=False)


@lab.command("merge")
def merge(
    folders: Annotated[list[Path], typer.Argument(help="Stores to copy from.", show_default=False)],
    into: Annotated[Path, typer.Option(help="The store to fill.")],
    dry_run: DryRun = False,
) -> None:
    """Bring stores that were filled on several machines together; equal ids are equal work, so nothing is overwritten.

    Example: `roadworthy merge runs/a runs/b --into runs/all`
    """
    copied = merge_stores([Store(folder) for folder in folders], Store(into), dry_run)
    console.print(f"{copied:,} items {'would be' if dry_run else 'were'} copied into {into}", highlight=False)
