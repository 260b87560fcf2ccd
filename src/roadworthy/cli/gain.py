"""The commands of GAIN, the generative imputer: train one, and search for its settings."""

import io
from dataclasses import replace
from pathlib import Path
from typing import Annotated, NamedTuple

import pandas as pd
import typer
from rich.console import Console
from rich.table import Table

from roadworthy.core.errors import PlanError
from roadworthy.core.files import write_atomically
from roadworthy.core.progress import progress_bar
from roadworthy.core.types import Dataset, Imputer
from roadworthy.evaluation.evaluators import check_apart
from roadworthy.evaluation.quality import Quality, imputation_quality
from roadworthy.experiments.build import build_data
from roadworthy.experiments.plans.reading import read_plan
from roadworthy.experiments.work import threads
from roadworthy.imputers import DatasetMean, NoisyLinear
from roadworthy.models.prediction import fastest_device
from roadworthy.training.gain import GainRecipe, save_gain, train_gain
from roadworthy.training.gain_search import ALPHAS, HINTS, Cell, grid, search

console = Console()
gain = typer.Typer(no_args_is_help=True, help="GAIN, the generative imputer.")

PlanPath = Annotated[
    Path,
    typer.Argument(help="A whole plan with [train] and [gain] too, as plans/gain-cifar10.toml.", show_default=False),
]
Epochs = Annotated[int | None, typer.Option(min=1, help="Instead of the plan's.", show_default=False)]


@gain.command("train")
def train(
    plan: PlanPath,
    out: Annotated[Path, typer.Option(help="The weights to write; beside them the curve, and a checkpoint.")] = Path(
        "gain.safetensors"
    ),
    epochs: Epochs = None,
) -> None:
    """Train the GAIN of a plan; stop it at any moment and run it again to go on after the last whole epoch.

    Use the weights in plans as `{ name = "gain", weights = "gain.safetensors" }`, in Python as `rw.Gain.load(...)`.

    Example: `roadworthy gain train plans/gain-cifar10.toml --out runs/gain.safetensors`
    """
    asked = _asked(plan, epochs)
    with threads(asked.threads), progress_bar("training (epochs)", asked.recipe.epochs) as advance:
        trained = train_gain(
            asked.recipe,
            asked.learned,
            checkpoint=out.with_name(f"{out.name}.checkpoint"),
            device=fastest_device(),
            on_epoch=lambda record: advance(1),
        )
    save_gain(trained, asked.recipe, out)
    curve = pd.DataFrame(trained.records)
    _write_table(curve, out.with_suffix(".curve.csv"))
    best = trained.records[trained.epoch]
    console.print(
        f"{out}: the weights of epoch {best.epoch + 1} of {len(curve)}; held-out train images: imputation MSE "
        f"{best.imputation:.5f} (removed pixels), reconstruction error {best.reconstruction:.5f} (kept pixels)",
        markup=False,
        highlight=False,
    )
    fills: dict[str, Imputer] = {"gain": trained.gain, "fixed": DatasetMean.of(asked.learned), "linear": NoisyLinear()}
    _show(list(imputation_quality(fills, asked.evaluated)))


@gain.command("search")
def find(
    plan: PlanPath,
    out: Annotated[Path, typer.Option(help="The table to write; checkpoints stand beside it.")] = Path(
        "gain-search.csv"
    ),
    alpha: Annotated[list[float], typer.Option(help="Weight of reconstruction; several times for several.")] = list(  # noqa: B006
        ALPHAS
    ),
    hint: Annotated[list[float], typer.Option(help="Hint rate; several times for several.")] = list(HINTS),  # noqa: B006
    epochs: Epochs = None,
) -> None:
    """Train a GAIN for each alpha and hint rate, and table their imputation MSE on held-out train images.

    Example: `roadworthy gain search plans/gain-cifar10.toml --alpha 10 --alpha 100 --hint 0.01 --hint 0.1 --epochs 2`
    """
    asked = _asked(plan, epochs)
    recipes, cells = grid(asked.recipe, alpha, hint), []
    checkpoints = out.with_name(f"{out.name}.checkpoints")
    with threads(asked.threads), progress_bar("training (epochs)", len(recipes) * asked.recipe.epochs) as advance:
        for cell in search(recipes, asked.learned, checkpoints, fastest_device(), lambda record: advance(1)):
            cells.append(cell)
            _write_table(pd.DataFrame(cells), out)  # whole after each cell: a search is long
    _show_grid(cells)
    console.print(f"Table: {out}", markup=False, highlight=False)


class _Asked(NamedTuple):
    recipe: GainRecipe
    learned: Dataset
    evaluated: Dataset
    """images that the plan evaluators: they must not be learned from"""
    threads: int


def _asked(path: Path, epochs: int | None) -> _Asked:
    plan = read_plan(path)
    if plan.gain is None:
        raise PlanError(f"{path}: [gain] is missing: copy it from plans/gain-cifar10.toml")
    learned, evaluated = build_data(plan, "train"), build_data(plan)
    check_apart(learned, evaluated)
    return _Asked(replace(plan.gain, epochs=epochs or plan.gain.epochs), learned, evaluated, plan.threads)


def _write_table(table: pd.DataFrame, path: Path) -> None:
    buffer = io.BytesIO()
    table.to_csv(buffer, index=False)
    write_atomically(path, buffer.getvalue())


def _show(rows: list[Quality]) -> None:
    """Imputation MSE on the images that will be evaluated: a row per kind of mask and fraction, a column per fill."""
    names = list(dict.fromkeys(row.imputer for row in rows))
    table = Table("masks", "removed", *names, title=f"Imputation MSE on {rows[0].images:,} images", title_style="bold")
    for masks, fraction in dict.fromkeys((row.masks, row.fraction) for row in rows):
        here = {row.imputer: row.mse for row in rows if (row.masks, row.fraction) == (masks, fraction)}
        table.add_row(masks, f"{fraction:.0%}", *(f"{here[name]:.5f}" for name in names))
    console.print(table)


def _show_grid(cells: list[Cell]) -> None:
    hints = list(dict.fromkeys(cell.hint for cell in cells))
    table = Table("alpha", *(f"hint {hint:g}" for hint in hints), title="Imputation MSE, held out", title_style="bold")
    found = {(cell.alpha, cell.hint): cell for cell in cells}
    for alpha in dict.fromkeys(cell.alpha for cell in cells):
        row = (found[alpha, hint] for hint in hints)
        table.add_row(f"{alpha:g}", *("failed" if cell.failure else f"{cell.imputation:.5f}" for cell in row))
    console.print(table)
    for cell in cells:
        if cell.failure:
            console.print(cell.failure, markup=False, highlight=False)
