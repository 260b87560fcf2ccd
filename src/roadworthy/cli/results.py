"""Commands that read run directories: show, report, figures, diff, export."""

from collections.abc import Hashable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from roadworthy.cli.output import DryRun, StorePath, check_table, console, load_run, say, write_table
from roadworthy.core.errors import RoadworthyError
from roadworthy.core.progress import progress_bar

if TYPE_CHECKING:
    import pandas as pd

    from roadworthy.experiments.comparison import Comparison

PlanFile = Annotated[
    Path | None, typer.Option("--plan", help="The original plan file, if the data have moved.", show_default=False)
]


class FailOn(StrEnum):
    rank_change = "rank-change"
    score_change = "score-change"


def show(folder: StorePath) -> None:
    """Print the rankings of a run with intervals, agreement, conclusion and warnings.

    Example: `roadworthy show runs/cifar10-cpu`
    """
    show_comparison(load_run(folder))


def show_comparison(comparison: "Comparison") -> None:
    from roadworthy.report.terminal import show_ranking

    ranking = comparison.ranking()
    methods = ranking.loc[~ranking["control"], "method"].nunique()
    show_ranking(
        console,
        ranking,
        comparison.agreement() if methods > 1 else None,
        "\n".join(comparison.details()),
        list(comparison.warnings()["text"]),
    )


def report(
    folder: StorePath,
    out: Annotated[Path, typer.Option("--out", "-o", help="HTML file to write.")] = Path("report.html"),
    plan: PlanFile = None,
) -> None:
    """Write an HTML report: ranking, curves, agreement, examples, audit, incomplete curves.

    Example: `roadworthy report runs/cifar10-cpu -o report.html`
    """
    from roadworthy.experiments.run import write_report

    with progress_bar("writing the report", None):
        page = write_report(folder, out, plan)
    say(f"Page: {page}   ({page.stat().st_size / 1e6:.1f} MB)")


def figures(
    folder: StorePath,
    out: Annotated[Path, typer.Option(help="Folder for the files; existing ones are replaced.")] = Path("figures"),
    method: Annotated[
        str | None, typer.Option(help="Method for figures that show only one. Default: the best.", show_default=False)
    ] = None,
    plan: PlanFile = None,
) -> None:
    """Draw the paper's figures (PDF, SVG, PNG) and tables (LaTeX).

    Figures that cannot be drawn are listed with the reason.

    Example: `roadworthy figures runs/cifar10-cpu --out figures/`
    """
    from roadworthy.experiments.figure_data import gather
    from roadworthy.report.figures.catalog import FIGURES, TABLES, write_all

    data = gather(load_run(folder, plan), folder, method)
    with progress_bar("figures and tables", len(FIGURES) + len(TABLES)) as advance:
        paths, skipped = write_all(data, out, advance)
    for line in skipped:
        say(f"skipped {line}")
    tables = sum(path.suffix == ".tex" for path in paths)
    say(f"{(len(paths) - tables) // 3} figures (PDF, SVG, PNG) and {tables} tables (LaTeX) are in {out}")


def export(
    folder: StorePath,
    file: Annotated[Path, typer.Argument(help="Table to write: .csv, .parquet or .json.", show_default=False)],
    dry_run: DryRun = False,
) -> None:
    """Export every prediction to a table, one row per point and image.

    Example: `roadworthy export runs/cifar10-cpu predictions.csv`
    """
    check_table(file)
    rows = load_run(folder).per_image()
    say(f"{len(rows):,} rows {'would be' if dry_run else 'are'} in {file}")
    if not dry_run:
        write_table(rows, file)


def diff(
    before: Annotated[Path, typer.Argument(help="A run directory.", show_default=False)],
    after: Annotated[Path, typer.Argument(help="The run directory to compare with it.", show_default=False)],
    fail_on: Annotated[
        list[FailOn] | None, typer.Option(help="Exit with code 1 on this kind of change. May be repeated.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Table to write: .csv, .parquet or .json.", show_default=False)
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the table as JSON and nothing else.")] = False,
) -> None:
    """Compare two runs: which scores changed beyond chance, which ranks, methods and settings differ.

    Exit code 0: compared; 1: a change of a kind named by --fail-on; 2: the runs cannot be compared.

    Example: `roadworthy diff runs/main runs/branch --fail-on rank-change`
    """
    from roadworthy import statistics

    try:
        if out:
            check_table(out)
        table = statistics.diff(load_run(before).predictions, load_run(after).predictions)
    except RoadworthyError as error:
        raise typer.BadParameter(str(error)) from error
    if json:
        typer.echo(table.to_json(orient="records"))
    else:
        _show_diff(table)
    if out:
        write_table(table, out)
    if any(_changes(table)[kind] for kind in fail_on or ()):
        raise typer.Exit(1)


def _changes(table: "pd.DataFrame") -> dict[FailOn, int]:
    """How many rows changed, by kind."""
    both = table[table["rank_before"].notna()]
    return {
        FailOn.rank_change: int((both["rank_before"] != both["rank_after"]).sum()),
        FailOn.score_change: int(both["change"].isin(["better", "worse"]).sum()),
    }


def _show_diff(table: "pd.DataFrame") -> None:
    from roadworthy.statistics import SCORES

    both = table[table["rank_before"].notna()]
    for (evaluator, imputer, score), block in both.groupby(["evaluator", "imputer", "score"], sort=False):
        title = escape(f"{evaluator} · imputed with {imputer} · {score} ({SCORES[str(score)].direction})")
        shown = Table(title=title, title_justify="left", title_style="bold")
        for column in ("method", "before", "after", "difference", "rank", "change"):
            shown.add_column(column)
        for row in block.sort_values("rank_after").to_dict("records"):
            same = row["change"] == "none" and row["rank_before"] == row["rank_after"]
            shown.add_row(*_cells(row), style="dim" if same else None)
        console.print(shown)
    for row in table[table["rank_before"].isna()].to_dict("records"):
        say(f"{row['change']}: {row['method']} ({row['evaluator']} · {row['score']} · {row['imputer']})")
    changed = _changes(table)
    paired = "image by image" if both["paired"].all() else "as independent runs (other images or seeds)"
    say(
        f"{changed[FailOn.score_change]} of {len(both)} scores changed beyond chance and "
        f"{changed[FailOn.rank_change]} ranks changed; compared {paired}"
    )


def _cells(row: Mapping[Hashable, Any]) -> list[str]:
    before, after = row["rank_before"], row["rank_after"]
    return [
        escape(str(row["method"])),
        f"{row['before']:.3f}",
        f"{row['after']:.3f}",
        escape(f"{row['difference']:+.3f} [{row['low']:+.3f}, {row['high']:+.3f}]"),
        f"{before}" if before == after else f"{before} → {after}",
        "" if row["change"] == "none" else str(row["change"]),
    ]
