"""`roadworthy imputers compare`: which imputer is most accurate, which can be detected, what each costs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from roadworthy.cli.output import console, say
from roadworthy.core.errors import InputError
from roadworthy.core.progress import progress_bar

if TYPE_CHECKING:
    import pandas as pd

    from roadworthy.core.types import Dataset, Imputer
    from roadworthy.experiments.plans import Plan

app = typer.Typer(no_args_is_help=True)

USUAL = ("fixed", "blur", "linear")
"""Compared whatever the plan names."""
_SHOWN = 10
"""Images in a picture."""


@app.callback()
def _group() -> None:
    """Compare imputers.

    Example: `roadworthy imputers compare plans/cifar10-cpu.toml`
    """


@app.command("compare")
def compare(
    plan: Annotated[Path, typer.Argument(help="Plan that names the data and the imputers.", show_default=False)],
    out: Annotated[Path, typer.Option(help="Folder for the table and the pictures.")] = Path("imputers"),
    fraction: Annotated[
        list[float] | None,
        typer.Option(
            help="Fraction of removed pixels. May be repeated. Default: 0.1, 0.3 and 0.5.", show_default=False
        ),
    ] = None,
    store: Annotated[
        Path | None,
        typer.Option(help="Run directory of the plan, for a GAIN that was trained there.", show_default=False),
    ] = None,
) -> None:
    """Compare imputers on the images of a plan: error, detectability of imputed pixels, time; with pictures.

    Compares fixed, blur and linear, and the imputers of the plan.

    Example: `roadworthy imputers compare plans/gain-cifar10.toml --store runs/gain-cifar10 --out imputers/`
    """
    from roadworthy.core.files import check_output, write_atomically
    from roadworthy.core.masks import MASKS, checked_fractions
    from roadworthy.core.random import Key
    from roadworthy.core.text import csv_bytes
    from roadworthy.evaluation.quality import picture_strip
    from roadworthy.experiments.build import build_data
    from roadworthy.experiments.imputer_comparison import compare_imputers
    from roadworthy.experiments.plans import read_plan
    from roadworthy.experiments.worker import threads
    from roadworthy.report.figures.imputers import strip_png

    opened = read_plan(plan)
    check_output(out / "imputers.csv")
    fractions = [value for value in checked_fractions(fraction or [0.1, 0.3, 0.5]) if 0 < value < 1]
    if not fractions:
        raise InputError("fractions 0 and 1 leave nothing to compare: give values between")
    data = build_data(opened)
    imputers = _imputers(opened, data, store)
    steps = len(imputers) * (1 + 2 * len(fractions))
    with threads(opened.threads), progress_bar("comparing imputers", steps) as advance:
        table = compare_imputers(imputers, data, fractions, Key(0), advance)
    _show(table)
    write_atomically(out / "imputers.csv", csv_bytes(table))
    few = next(data.batches(min(_SHOWN, len(data))))
    for masks in MASKS:
        for value in fractions:
            pixels = picture_strip(imputers, few, masks, value).permute(1, 2, 0).numpy()
            names = ["image", f"{value:.0%} removed", *imputers]
            write_atomically(out / f"{masks}-{round(100 * value)}.png", strip_png(pixels, names, len(few)))
    say(f"Table and {len(MASKS) * len(fractions)} pictures: {out}")


def _imputers(plan: "Plan", data: "Dataset", store: Path | None) -> "dict[str, Imputer]":
    from roadworthy.experiments.build import build_imputer
    from roadworthy.experiments.registry import lookup
    from roadworthy.experiments.run import open_run
    from roadworthy.training.gain import GainRecipe

    usual = {}
    for name in USUAL:
        entry = lookup("imputers", name)
        usual[name] = entry.make(data) if entry.needs_data else entry.make()
    if store is not None:
        return {**usual, **open_run(store).source.all_imputers()}
    built = {name: build_imputer(plan, name, data) for name in plan.imputers}
    if plan.trained_imputers:
        say(f"left out: {', '.join(plan.trained_imputers)}, trained in a run directory; name it with --store")
    return {**usual, **{name: value for name, value in built.items() if not isinstance(value, GainRecipe)}}


def _show(table: "pd.DataFrame") -> None:
    from roadworthy.report.terminal import titled_table

    numbers = ("MSE of removed pixels", "AUC of detection", "ms per image")
    for masks, block in table.groupby("masks", sort=False):
        title = f"{masks}, {block['images'].iloc[0]:,} images"
        shown = titled_table(title, "removed", "imputer", *numbers, numbers=("removed", *numbers))
        for row in block.sort_values("fraction", kind="stable").itertuples():
            cells = (f"{row.fraction:.0%}", escape(str(row.imputer)), f"{row.mse:.5f}", f"{row.auc:.2f}")
            shown.add_row(*cells, f"{row.milliseconds:.3f}")
        console.print(shown)
        console.print()
    say("Lower MSE is more accurate; at an AUC of 0.5 this detector does not find imputed pixels.")
