"""Commands that read run directories: show, report, figures, export."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from roadworthy.cli.output import DryRun, StorePath, check_table, console, load_run, say, write_table
from roadworthy.core.progress import progress_bar

if TYPE_CHECKING:
    from roadworthy.experiments.audit_run import Audit
    from roadworthy.experiments.comparison import Comparison

PlanFile = Annotated[
    Path | None, typer.Option("--plan", help="The original plan file, if the data have moved.", show_default=False)
]


def show(folder: StorePath) -> None:
    """Print the rankings of a run with intervals, agreement, conclusion and warnings.

    Example: `roadworthy show runs/cifar10-cpu`
    """
    from roadworthy.experiments.audit_run import Audit

    show_comparison(load_run(folder), audit=Audit.load(folder / "audit"))


def show_comparison(comparison: "Comparison", closing: Sequence[str] = (), audit: "Audit | None" = None) -> None:
    """The ranking, what to know about it, `closing` lines, and the conclusion last."""
    from roadworthy.report.tables import accuracy_text
    from roadworthy.report.terminal import show_ranking

    ranking = comparison.ranking()
    methods = ranking.loc[~ranking["control"], "method"].nunique()
    conclusion = comparison.conclusion()
    show_ranking(
        console,
        ranking,
        comparison.standings(),
        comparison.agreement() if methods > 1 else None,
        state=conclusion.state,
        conclusion=conclusion.sentence,
        details=conclusion.details,
        cards=comparison.cards(audit),
        accuracy=accuracy_text(comparison.plain_accuracy(), comparison.results.unlabeled),
        warnings=_warnings(comparison),
        self_test=_self_test(comparison),
        confidence=comparison.results.confidence,
        closing=closing,
    )


def _self_test(comparison: "Comparison") -> list[str]:
    """What it found, apart from what is among the warnings."""
    if comparison.results.self_test is None:
        return []
    test = comparison.self_test()
    return [text for text in test.sentences if text not in {doubt.text for doubt in test.doubts}]


def _warnings(comparison: "Comparison") -> list[str]:
    """Those about the setting to look at first, and how many there are about others."""
    from roadworthy.statistics import preferred_block

    table = comparison.warnings()
    main = preferred_block(comparison.ranking(), comparison.results.preferred)
    elsewhere = ((table["evaluator"] != "") & (table["evaluator"] != main[0])) | (
        (table["imputer"] != "") & (table["imputer"] != main[1])
    )
    texts, others = list(table.loc[~elsewhere, "text"]), int(elsewhere.sum())
    return [*texts, f"{others} more about other settings: see the report."] if others else texts


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
