"""Commands that look at what stores hold: figures and tables for a paper, what changed between two runs."""

from collections.abc import Hashable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import pandas as pd
import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from roadworthy import statistics
from roadworthy.cli.run import StorePath, check_table, opened, write_table
from roadworthy.core.errors import RoadworthyError, StoreError
from roadworthy.core.progress import progress_bar
from roadworthy.core.results import Point, Predictions
from roadworthy.experiments import runner
from roadworthy.experiments.figure_data import gathered
from roadworthy.experiments.plans.reading import read_plan
from roadworthy.experiments.stored import saved_comparison, stored_comparison
from roadworthy.experiments.stores.run_directory import Store
from roadworthy.report.figures.catalog import FIGURES, TABLES, write_all
from roadworthy.report.terminal import show

console = Console()
runs = typer.Typer()


class FailOn(StrEnum):
    rank_change = "rank-change"
    score_change = "score-change"


class _Held(NamedTuple):
    """The whole curves of a store; the work of its plan, if it has one; how many points are missing."""

    predictions: dict[Point, Predictions]
    work: runner.Work | None
    missing: int


def _held(folder: Path) -> _Held:
    store, work = opened(folder)
    if work is None:
        return _Held(store.predictions(), None, 0)
    missing = len(work.missing_trials)
    predictions, _ = statistics.whole_curves(runner.predictions(work, store), work.trials)
    if not predictions:
        raise StoreError(f"{folder} holds no whole curve yet, {missing:,} points are missing: run its plan again")
    return _Held(predictions, work, missing)


def _say_missing(folder: Path, held: _Held) -> None:
    if held.missing:
        text = f"{folder}: {held.missing:,} points are missing; curves that lack one are left out"
        Console(stderr=True).print(text, markup=False, highlight=False, soft_wrap=True)


@runs.command("ranking")
def ranking(folder: StorePath) -> None:
    """Which method can be trusted? Print what a store says: rankings with intervals, agreement, prediction, warnings.

    Example: `roadworthy ranking runs/cifar10-cpu`
    """
    held = _held(folder)
    _say_missing(folder, held)
    store = Store(folder)
    show(stored_comparison(store, held.work)[0] if held.work else saved_comparison(store))


@runs.command("figures")
def figures(
    folder: StorePath,
    out: Annotated[Path, typer.Option(help="Folder for the files; those of the same name are replaced.")] = Path(
        "figures"
    ),
    method: Annotated[str | None, typer.Option(help="For the figures of one method; the best if not given.")] = None,
    plan: Annotated[Path | None, typer.Option(help="The plan's own file, if its paths are relative to it.")] = None,
) -> None:
    """Draw the paper's figures (PDF, SVG, PNG) and tables (LaTeX) from a store; what it lacks is skipped and said.

    Example: `roadworthy figures runs/cifar10-cpu --out figures/`
    """
    held = _held(folder)
    _say_missing(folder, held)
    own = read_plan(plan) if plan else held.work.plan if held.work else None
    material = gathered(folder, held.predictions, held.work, own, method)
    with progress_bar("figures and tables", len(FIGURES) + len(TABLES)) as advance:
        paths, skipped = write_all(material, out, advance)
    for line in skipped:
        console.print(f"skipped {line}", markup=False, highlight=False, soft_wrap=True)
    tables = sum(path.suffix == ".tex" for path in paths)
    drawn = (len(paths) - tables) // 3
    console.print(f"{drawn} figures (PDF, SVG, PNG) and {tables} tables (LaTeX) are in {out}", highlight=False)


@runs.command("compare-runs")
def compare_runs(
    before: Annotated[Path, typer.Argument(help="A store.", show_default=False)],
    after: Annotated[Path, typer.Argument(help="Another, to be compared with it.", show_default=False)],
    fail_on: Annotated[
        list[FailOn] | None, typer.Option(help="End with exit code 1 on such a change; may be given twice.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write the table to FILE.csv, .parquet or .json")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the table as JSON, nothing else.")] = False,
) -> None:
    """What changed between two stores: scores beyond chance, ranks, methods and settings that are in one only.

    Exit code 0: compared; 1: a change that --fail-on names; 2: the two cannot be compared.

    Example: `roadworthy compare-runs runs/main runs/branch --fail-on rank-change`
    """
    try:
        if out:
            check_table(out)
        sides = {folder: _held(folder) for folder in (before, after)}
        table = statistics.changes(sides[before].predictions, sides[after].predictions)
    except RoadworthyError as error:
        raise typer.BadParameter(str(error)) from error
    for folder, held in sides.items():
        _say_missing(folder, held)
    if json:
        typer.echo(table.to_json(orient="records"))
    else:
        _show_changes(table)
    if out:
        write_table(table, out)
    if any(_occurred(table)[kind] for kind in fail_on or ()):
        raise typer.Exit(1)


def _occurred(table: pd.DataFrame) -> dict[FailOn, int]:
    """How many rows changed, by kind."""
    both = table[table["rank_before"].notna()]
    return {
        FailOn.rank_change: int((both["rank_before"] != both["rank_after"]).sum()),
        FailOn.score_change: int(both["change"].isin(["better", "worse"]).sum()),
    }


def _show_changes(table: pd.DataFrame) -> None:
    both = table[table["rank_before"].notna()]
    for (evaluator, imputer, score), block in both.groupby(["evaluator", "imputer", "score"], sort=False):
        direction = statistics.SCORES[str(score)].direction
        title = escape(f"{evaluator} · filled by {imputer} · {score} ({direction})")
        shown = Table(title=title, title_justify="left", title_style="bold")
        for column in ("method", "before", "after", "difference", "rank", "change"):
            shown.add_column(column)
        for row in block.sort_values("rank_after").to_dict("records"):
            same = row["change"] == "none" and row["rank_before"] == row["rank_after"]
            shown.add_row(*_cells(row), style="dim" if same else None)
        console.print(shown)
    for row in table[table["rank_before"].isna()].to_dict("records"):
        text = f"{row['change']}: {row['method']} ({row['evaluator']} · {row['score']} · {row['imputer']})"
        console.print(text, markup=False, highlight=False, soft_wrap=True)
    changed = _occurred(table)
    paired = "image by image" if both["paired"].all() else "as independent runs (other images or seeds)"
    text = (
        f"{changed[FailOn.score_change]} of {len(both)} scores changed beyond chance and "
        f"{changed[FailOn.rank_change]} ranks changed; compared {paired}"
    )
    console.print(text, highlight=False, soft_wrap=True)


def _cells(row: Mapping[Hashable, Any]) -> list[str]:
    then, now = row["rank_before"], row["rank_after"]
    return [
        escape(str(row["method"])),
        f"{row['before']:.3f}",
        f"{row['after']:.3f}",
        escape(f"{row['difference']:+.3f} [{row['low']:+.3f}, {row['high']:+.3f}]"),
        f"{then}" if then == now else f"{then} → {now}",
        "" if row["change"] == "none" else str(row["change"]),
    ]
