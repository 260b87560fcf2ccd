"""`roadworthy diff`: what changed between two runs."""

from collections.abc import Hashable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from roadworthy.cli.output import check_table, console, load_run, say, warn, write_table
from roadworthy.core.errors import RoadworthyError

if TYPE_CHECKING:
    import pandas as pd


class FailOn(StrEnum):
    rank_change = "rank-change"
    score_change = "score-change"


def diff(
    before: Annotated[Path, typer.Argument(help="A run directory.", show_default=False)],
    after: Annotated[Path, typer.Argument(help="The run directory to compare with it.", show_default=False)],
    fail_on: Annotated[
        list[FailOn] | None, typer.Option(help="Exit with code 1 on this kind of change. May be repeated.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Table to write: .csv, .parquet or .json.", show_default=False)
    ] = None,
    show_all: Annotated[bool, typer.Option("--all", help="Show what did not change, too.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the table as JSON and nothing else.")] = False,
) -> None:
    """Compare two runs: which scores changed beyond chance, which ranks, methods and settings differ.

    Shows what changed; --all shows the rest, and --out writes everything to a file.

    Both must be about the same data set. Other weights and other images of it are allowed, and said first.

    Exit code 0: compared; 1: a change of a kind named by --fail-on; 2: the runs cannot be compared.

    Example: `roadworthy diff runs/main runs/branch --fail-on rank-change`
    """
    from roadworthy import statistics
    from roadworthy.experiments.comparable import check_same_data, image_difference, model_difference

    try:
        if out:
            check_table(out)
        old, new = load_run(before).results, load_run(after).results
        check_same_data(old, new)
        table = statistics.diff(old.predictions, new.predictions, unlabeled=old.unlabeled or new.unlabeled)
    except RoadworthyError as error:
        raise typer.BadParameter(str(error)) from error
    for sentence in filter(None, (model_difference(old, new), image_difference(old, new))):
        (warn if json else say)(sentence)
    if json:
        typer.echo(table.to_json(orient="records"))
    else:
        _show_diff(table, show_all)
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


_ROWS = 24
"""Changes that fit a screen; further ones are counted."""


def _show_diff(table: "pd.DataFrame", show_all: bool) -> None:
    from roadworthy.report.terminal import show_conclusion

    both = table[table["rank_before"].notna()]
    changed = (both["change"] != "none") | (both["rank_before"] != both["rank_after"])
    rows = both if show_all else both[changed]
    _show_changes(rows if show_all else rows[:_ROWS])
    if not show_all and len(rows) > _ROWS:
        say(f"{len(rows) - _ROWS} more changes: --all shows them.")
    _show_unmatched(table[table["rank_before"].isna()])
    counts = _changes(table)
    paired = "image by image" if both["paired"].all() else "as independent runs (other images or seeds)"
    show_conclusion(
        console,
        "",
        f"{counts[FailOn.score_change]} of {len(both)} scores changed beyond chance and "
        f"{counts[FailOn.rank_change]} ranks changed; compared {paired}",
    )


_TITLES = {"srg": "LeRF − MoRF ↑", "morf": "MoRF ↓", "lerf": "LeRF ↑"}
_WIDTHS = {"before": 6, "after": 6, "difference": 23, "rank": 7, "change": 6}


def _show_changes(rows: "pd.DataFrame") -> None:
    """A heading for each setting and score; the columns of all are aligned and named once."""
    from roadworthy.report.terminal import titled_table

    several, names = rows["evaluator"].nunique() > 1, max(map(len, rows["method"]), default=0)
    for number, (key, block) in enumerate(rows.groupby(["score", "imputer", "evaluator"], sort=False)):
        score, imputer, evaluator = map(str, key)
        setting = " · ".join((_TITLES.get(score, score), imputer, *([evaluator] if several else [])))
        shown = titled_table(setting, "method", *_WIDTHS, numbers=("before", "after", "difference", "rank"))
        shown.show_header = number == 0
        for column, width in zip(shown.columns, (min(names, 16), *_WIDTHS.values()), strict=True):
            column.min_width = width
        for row in block.sort_values("rank_after").to_dict("records"):
            same = row["change"] == "none" and row["rank_before"] == row["rank_after"]
            shown.add_row(*_cells(row), style="dim" if same else None)
        if number:
            console.print()
        console.print(shown)


def _show_unmatched(rows: "pd.DataFrame") -> None:
    """Methods that only one of the runs has: the first setting of each, and how many others."""
    for (change, method), block in rows.groupby(["change", "method"], sort=False):
        first = block.iloc[0]
        others = f" and {len(block) - 1} more" if len(block) > 1 else ""
        say(f"{change}: {method} ({first['evaluator']} · {first['score']} · {first['imputer']}{others})")


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
