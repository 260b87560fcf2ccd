"""`roadworthy self-test`: which benchmark settings recover the true order of maps, where it is known?"""

import time
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from roadworthy.cli.output import check_table, console, duration, say, write_table

if TYPE_CHECKING:
    import pandas as pd

_QUICK_DRAWS = 5


def self_test(
    world: Annotated[
        list[str] | None,
        typer.Option(help="Name of a world. May be repeated. Default: all.", show_default=False),
    ] = None,
    benchmark: Annotated[
        list[str] | None,
        typer.Option(help="Name of a benchmark setting. May be repeated. Default: all.", show_default=False),
    ] = None,
    draws: Annotated[int, typer.Option(min=1, help="Random draws of each world.")] = 10,
    trained_draws: Annotated[
        int, typer.Option(min=0, help="The same for settings that train networks; 0 leaves them out.")
    ] = 1,
    images: Annotated[int, typer.Option(min=8, help="Images of each world.")] = 100,
    seed: Annotated[int, typer.Option(min=0, help="Of the first draw; the others follow.")] = 0,
    quick: Annotated[
        bool, typer.Option("--quick", help=f"Only {_QUICK_DRAWS} draws, and no setting that trains.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="File for the table: .csv, .parquet or .json.", show_default=False)
    ] = None,
) -> None:
    """Run every benchmark setting on worlds whose answer is known, and show which recover the true order how often.

    Each world is a model whose evidence is known exactly, with images and maps of known quality: exact, blurred, noisy,
    constant, misleading and inverted ones. See docs/benchmark-of-benchmarks.md.

    Example: `roadworthy self-test --quick`
    """
    from roadworthy.experiments.self_test.truth_test import truth_test as run

    started = time.monotonic()
    if out is not None:
        check_table(out)
    draws, trained_draws = (_QUICK_DRAWS, 0) if quick else (draws, trained_draws)
    found = run(world, benchmark, draws=draws, trained_draws=trained_draws, images=images, seed=seed)
    table = found.table()
    for name, block in table.groupby("world", sort=False):
        order = found.orders.get(str(name))
        say(f"{name}" + (f": {_shown(order)}" if order else ""))
        if other := next((own for (_, world), own in found.own_orders.items() if world == name), None):
            say(f"in patches: {_shown(other)}")
        _show(block)
    if out is not None:
        write_table(table, out)
        say(f"Table: {out}")
    if "ROAD" in set(table["benchmark"]) and table["benchmark"].nunique() > 1:
        say("Pairs in the true order, draw by draw; clearly: by an interval that holds for all differences together.")
        say("\n".join(found.conclusions()))
    say(f"\nMeans over draws, with 95 % intervals. It took {duration(time.monotonic() - started)}.")


def _shown(order: Sequence[Sequence[str]]) -> str:
    return " > ".join(" = ".join(group) for group in order)


def _show(block: "pd.DataFrame") -> None:
    from rich.markup import escape

    from roadworthy.report.terminal import titled_table

    numbers = ("draws", "whole order, %", "pairs, %", "Spearman")
    shown = titled_table("", "benchmark", *numbers, numbers=numbers)
    for row in block.to_dict("records"):
        cells = [_cell(row, "whole", 100, ".0f"), _cell(row, "pairs", 100, ".0f"), _cell(row, "spearman", 1, ".2f")]
        shown.add_row(escape(str(row["benchmark"])), str(row["draws"]), *cells)
    console.print(shown)
    console.print()


def _cell(row: dict[Hashable, Any], name: str, scale: float, digits: str) -> str:
    value, low, high = (f"{scale * row[name + end]:{digits}}" for end in ("", "_low", "_high"))
    return f"{value} [{low}, {high}]"
