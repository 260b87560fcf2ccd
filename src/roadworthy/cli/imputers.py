"""The command `roadworthy imputers compare`: which fill guesses best, which one shows, what does it cost?"""

import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import pandas as pd
import typer
from matplotlib import rc_context
from matplotlib.figure import Figure
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from roadworthy.audit.mask_detection import train_predictor
from roadworthy.audit.tables import Hole, recovery_table
from roadworthy.cli.run import opened
from roadworthy.core.errors import InputError
from roadworthy.core.files import write_atomically
from roadworthy.core.masks import MASKS, checked_fractions
from roadworthy.core.progress import progress_bar
from roadworthy.core.random import Key
from roadworthy.core.results import Recovered
from roadworthy.core.types import Batch, Dataset, Imputer
from roadworthy.evaluation.quality import imputation_quality, picture_strip
from roadworthy.experiments.auditing import apart, recovered_patterns
from roadworthy.experiments.build import build_data, build_imputer, build_imputers
from roadworthy.experiments.plans.plan import Plan
from roadworthy.experiments.plans.reading import read_plan
from roadworthy.experiments.runner import imputers_at_hand
from roadworthy.experiments.work import threads

console = Console()
imputers = typer.Typer(no_args_is_help=True, help="Fills, beside each other.")

USUAL = ("fixed", "blur", "linear")
"""compared whatever the plan names"""
_SHOWN = 10
"""images in a picture strip"""


@imputers.callback()
def _group() -> None:
    """Fills, beside each other."""


@imputers.command("compare")
def compare(
    plan: Annotated[Path, typer.Argument(help="A plan: its data and its imputers.", show_default=False)],
    out: Annotated[Path, typer.Option(help="Folder for the table and the pictures.")] = Path("imputers"),
    fraction: Annotated[list[float] | None, typer.Option(help="Shares removed; 0.1, 0.3 and 0.5 if not given.")] = None,
    store: Annotated[Path | None, typer.Option(help="The plan's store, for a GAIN that was trained there.")] = None,
) -> None:
    """Compare fills on a plan's images: error on removed pixels, whether filled pixels are told, time; with pictures.

    Fixed, blur and linear are compared, and what the plan names besides.

    Example: `roadworthy imputers compare plans/gain-cifar10.toml --store runs/gain-cifar10 --out imputers/`
    """
    read = read_plan(plan)
    fractions = [one for one in checked_fractions(fraction or [0.1, 0.3, 0.5]) if 0 < one < 1]
    if not fractions:
        raise InputError("fractions 0 and 1 leave nothing to compare: give shares between")
    data = build_data(read)
    fills = _fills(read, data, store)
    with threads(read.threads), progress_bar("comparing imputers", len(fills) * (1 + 2 * len(fractions))) as advance:
        table = compared(fills, data, fractions, Key(0), advance)
    _show(table)
    write_atomically(out / "imputers.csv", table.to_csv(index=False).encode())
    few = next(data.batches(min(_SHOWN, len(data))))
    for masks in MASKS:
        for one in fractions:
            write_atomically(out / f"{masks}-{round(100 * one)}.png", strip(fills, few, masks, one))
    console.print(f"Table and {len(MASKS) * len(fractions)} pictures: {out}", markup=False, highlight=False)


def compared(
    fills: Mapping[str, Imputer],
    data: Dataset,
    fractions: Sequence[float],
    key: Key,
    advance: Callable[[int], object] = lambda steps: None,
) -> pd.DataFrame:
    """imputer, masks, fraction: which fill of which holes · mse: of removed pixels, mean over images · auc, error:
    how well a predictor that learned to tells filled pixels, on images it never saw (docs/audit.md) · guess: the error
    of the best constant answer · milliseconds: per image · images.
    """
    rows = []
    for row in imputation_quality(fills, data, fractions, key):
        rows.append(row)
        advance(1)
    quality = pd.DataFrame(rows)
    learned, tested, _ = apart(data, key)
    recovered: dict[Hole, Recovered] = {}
    for name, imputer in fills.items():
        network = train_predictor(imputer, learned, key.fold("predictor"))
        recovered |= dict(recovered_patterns(network, name, imputer, tested, fractions, key))
        advance(1)
    told = recovery_table(recovered)[["imputer", "masks", "fraction", "auc", "error", "guess"]]
    table = quality.merge(told, on=["imputer", "masks", "fraction"])
    table["milliseconds"] = 1000 * table["seconds"]
    return table[["imputer", "masks", "fraction", "mse", "auc", "error", "guess", "milliseconds", "images"]]


def _fills(plan: Plan, data: Dataset, store: Path | None) -> dict[str, Imputer]:
    usual = {name: build_imputer({"name": name}, data) for name in USUAL}
    if store is None:
        if plan.trained_imputers:
            names = ", ".join(plan.trained_imputers)
            console.print(f"left out: {names}, trained in a store; name it with --store", markup=False, highlight=False)
        return {**usual, **build_imputers(plan, data)}
    found, work = opened(store)
    if work is None:
        raise InputError(f"{store} is a saved comparison, which trains no imputer: leave --store out")
    return {**usual, **imputers_at_hand(work, found, data)}


def strip(fills: Mapping[str, Imputer], batch: Batch, masks: str, fraction: float) -> bytes:
    """A PNG: a column per image; rows are the image, the image with black holes, and each fill."""
    pixels = picture_strip(fills, batch, masks, fraction).permute(1, 2, 0).numpy()
    names = ["image", f"{fraction:.0%} removed", *fills]
    height = pixels.shape[0] / len(names)
    with rc_context({"font.size": 8}):
        figure = Figure(figsize=(1.2 + 0.7 * len(batch), 0.7 * len(names)), layout="constrained")
        panel = figure.subplots()
        panel.imshow(pixels.squeeze(), cmap="gray", vmin=0, vmax=1, interpolation="nearest")
        panel.set_yticks([(row + 0.5) * height - 0.5 for row in range(len(names))], names)
        panel.set_xticks([])
        panel.tick_params(length=0)
        panel.spines[:].set_visible(False)
        content = io.BytesIO()
        figure.savefig(content, format="png", dpi=150)
    return content.getvalue()


def _show(table: pd.DataFrame) -> None:
    for masks, block in table.groupby("masks", sort=False):
        shown = Table(title=f"{masks}, {block['images'].iloc[0]:,} images", title_justify="left", title_style="bold")
        for column in ("removed", "imputer", "MSE of removed pixels", "AUC of telling them", "ms per image"):
            shown.add_column(column)
        for row in block.sort_values("fraction", kind="stable").itertuples():
            cells = (f"{row.fraction:.0%}", escape(str(row.imputer)), f"{row.mse:.5f}", f"{row.auc:.2f}")
            shown.add_row(*cells, f"{row.milliseconds:.3f}")
        console.print(shown)
    console.print("A low MSE guesses well; an AUC near 0.5 cannot be told from what was kept.", highlight=False)
