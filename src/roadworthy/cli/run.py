"""Commands that fill run directories: run, status, merge."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roadworthy.cli.output import (
    DryRun,
    Jobs,
    PlanPath,
    StorePath,
    console,
    duration,
    load_run,
    resumable,
    say,
    warn_all,
)
from roadworthy.core.progress import progress_bar

if TYPE_CHECKING:
    from roadworthy.experiments.pending import Survey
    from roadworthy.experiments.stores.run_directory import RunDirectory


class ExecutorName(StrEnum):
    local = "local"
    ray = "ray"


def run(
    plan: PlanPath,
    store: Annotated[
        Path | None,
        typer.Option(help="Run directory, created or resumed. Default: runs/NAME-OF-PLAN.", show_default=False),
    ] = None,
    executor: Annotated[ExecutorName, typer.Option(help="Where to compute.")] = ExecutorName.local,
    address: Annotated[
        str, typer.Option(help="Address of the Ray cluster; local starts one. In trusted networks only.")
    ] = "local",
    jobs: Jobs = 0,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Show what would be computed and estimate its cost; builds the model to time it."
        ),
    ] = False,
) -> None:
    """Run the pending items of a plan.

    Stop it at any time and run it again to resume: only the item in progress is lost.

    A plan can name code (model, methods, imputers, loss, augmentation), which is run with your rights: run only plans
    that you trust. The commands that read results (status, show, report, figures, diff, export) run none of it.

    Example: `roadworthy run plans/cifar10-cpu.toml --store runs/cifar10-cpu`
    """
    from roadworthy.cli.dry_run import show_dry_run
    from roadworthy.experiments.plans import read_plan
    from roadworthy.experiments.progress import Bar
    from roadworthy.experiments.run import default_store, run_plan
    from roadworthy.experiments.stores.run_directory import RunDirectory

    opened, directory = read_plan(plan), RunDirectory(store or default_store(plan))
    if dry_run:
        show_dry_run(opened, str(plan), directory)
        return
    stopped = f"stopped; finished items are in {directory.root}: run again to resume"
    with resumable(stopped), Bar("run") as bar:
        state = run_plan(opened, directory, executor.value, jobs, address, bar, warn_all)
    total = len(state.goals)
    say(f"{total - len(state.missing):,} of {total:,} items are in {directory.root}")
    if failures := _failures(directory, state):
        say(f"{len(failures)} failed: roadworthy status {directory.root}")
        raise typer.Exit(1)
    _conclude(directory.root)


def _conclude(folder: Path) -> None:
    """Where the results are to be seen, and what they amount to."""
    from roadworthy.report.terminal import show_conclusion

    with progress_bar("drawing the conclusion", None):
        conclusion = load_run(folder).conclusion()
    say(f"Ranking: roadworthy show {folder}   page: roadworthy report {folder}")
    show_conclusion(console, conclusion.state, conclusion.sentence)


def status(folder: StorePath) -> None:
    """Show what is done, pending and failed, and estimate the remaining time.

    Example: `roadworthy status runs/cifar10-cpu`
    """
    from roadworthy.experiments.pending import survey
    from roadworthy.experiments.results import runtimes
    from roadworthy.experiments.run import open_run

    opened = open_run(folder)
    state = survey(opened.design, opened.store)
    failures = _failures(opened.store, state, "audit")
    pending, durations = len(state.missing), opened.store.manifest().get("durations", {})
    say(f"done {len(state.goals) - pending:,}  pending {pending:,}  failed {len(failures):,}")
    if pending and durations:
        say(f"about {duration(sum(durations.values()) / len(durations) * pending)} of computing left")
    rows = runtimes(opened.design, state, opened.store)
    base = next((f"{row.evaluator} · {row.imputer}" for row in rows if row.relative == 1), "")
    for row in rows:
        cost = f"{row.seconds:.2f} s per curve ({row.relative:.0%} of the cost of {base})"
        say(f"{row.evaluator} · {row.imputer}: {cost}")
    for failure in failures:
        say(f"failed: {failure['label']}\n{failure['traceback']}")


def _failures(store: "RunDirectory", state: "Survey", *kinds: str) -> list[dict[str, Any]]:
    """Of the plan as it is now, and of further `kinds` of items; not of earlier versions of plan, code or data."""
    return [failure for id, failure in store.failures().items() if id in state.goals or failure["kind"] in kinds]


def merge(
    folders: Annotated[list[Path], typer.Argument(help="Run directories to copy from.", show_default=False)],
    into: Annotated[Path, typer.Option(help="The run directory to copy into.")],
    dry_run: DryRun = False,
) -> None:
    """Merge run directories of the same plan, for example from several machines.

    Items with the same id have the same content, so nothing is overwritten.

    Example: `roadworthy merge runs/a runs/b --into runs/all`
    """
    from roadworthy.experiments.stores.run_directory import RunDirectory
    from roadworthy.experiments.stores.run_directory import merge as merge_directories

    copied = merge_directories([RunDirectory(folder) for folder in folders], RunDirectory(into), dry_run)
    say(f"{copied:,} items {'would be' if dry_run else 'were'} copied into {into}")
