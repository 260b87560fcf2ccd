"""`roadworthy gain`: train the generative imputer, and search for its settings."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from roadworthy.cli.output import check_table, console, say, write_table
from roadworthy.core.errors import PlanError
from roadworthy.core.progress import progress_bar

if TYPE_CHECKING:
    from roadworthy.core.types import Dataset, Imputer
    from roadworthy.evaluation.quality import Quality
    from roadworthy.training.gain import GainRecipe
    from roadworthy.training.gain_search import Cell

app = typer.Typer(no_args_is_help=True)

PlanPath = Annotated[
    Path, typer.Argument(help="Plan with [train] and [gain], such as plans/gain-cifar10.toml.", show_default=False)
]
Epochs = Annotated[int | None, typer.Option(min=1, help="Number of epochs, instead of the plan's.", show_default=False)]


@app.callback()
def _group() -> None:
    """Train GAIN, the generative imputer.

    Example: `roadworthy gain train plans/gain-cifar10.toml`
    """


@app.command("train")
def train(
    plan: PlanPath,
    out: Annotated[
        Path, typer.Option(help="Weights file to write, with training curve and checkpoint beside it.")
    ] = Path("gain.safetensors"),
    epochs: Epochs = None,
) -> None:
    """Train the GAIN of a plan.

    Stop it at any time and run it again: it resumes after the last complete epoch.

    Use the weights in plans as `{ name = "gain", weights = "gain.safetensors" }`, in Python as `rw.Gain.load(...)`.

    Example: `roadworthy gain train plans/gain-cifar10.toml --out runs/gain.safetensors`
    """
    import pandas as pd

    from roadworthy.core.files import check_output
    from roadworthy.evaluation.quality import imputation_quality
    from roadworthy.experiments.worker import threads
    from roadworthy.imputers import DatasetMean, NoisyLinear
    from roadworthy.models.prediction import fastest_device
    from roadworthy.training.gain import save_gain, train_gain

    check_output(out)
    job = _job(plan, epochs)
    with threads(job.threads), progress_bar("training (epochs)", job.recipe.epochs) as advance:
        trained = train_gain(
            job.recipe,
            job.train,
            checkpoint=out.with_name(f"{out.name}.checkpoint"),
            device=fastest_device(),
            on_epoch=lambda record: advance(1),
        )
    save_gain(trained, job.recipe, out)
    curve = pd.DataFrame(trained.records)
    write_table(curve, out.with_suffix(".curve.csv"))
    best = trained.records[trained.epoch]
    say(
        f"{out}: epoch {best.epoch + 1} of {len(curve)}; on held-out train images: imputation MSE "
        f"{best.imputation:.5f} (removed pixels), reconstruction error {best.reconstruction:.5f} (kept pixels)"
    )
    imputers: dict[str, Imputer] = {"gain": trained.gain, "fixed": DatasetMean.of(job.train), "linear": NoisyLinear()}
    _show_quality(list(imputation_quality(imputers, job.test)))


@app.command("search")
def search(
    plan: PlanPath,
    out: Annotated[Path, typer.Option(help="Table to write; checkpoints are kept beside it.")] = Path(
        "gain-search.csv"
    ),
    alpha: Annotated[
        list[float] | None,
        typer.Option(help="Weight of the reconstruction loss. May be repeated. Default: the paper's grid."),
    ] = None,
    hint: Annotated[
        list[float] | None, typer.Option(help="Hint rate. May be repeated. Default: the paper's grid.")
    ] = None,
    epochs: Epochs = None,
) -> None:
    """Train a GAIN for each alpha and hint rate, and compare their imputation MSE on held-out train images.

    Example: `roadworthy gain search plans/gain-cifar10.toml --alpha 10 --alpha 100 --hint 0.01 --hint 0.1 --epochs 2`
    """
    import pandas as pd

    from roadworthy.experiments.worker import threads
    from roadworthy.models.prediction import fastest_device
    from roadworthy.training import gain_search

    check_table(out)
    job = _job(plan, epochs)
    recipes = gain_search.grid(job.recipe, alpha or list(gain_search.ALPHAS), hint or list(gain_search.HINTS))
    checkpoints, cells = out.with_name(f"{out.name}.checkpoints"), []
    with threads(job.threads), progress_bar("training (epochs)", len(recipes) * job.recipe.epochs) as advance:
        for cell in gain_search.search(recipes, job.train, checkpoints, fastest_device(), lambda record: advance(1)):
            cells.append(cell)
            write_table(pd.DataFrame(cells), out)  # complete after each cell: a search is long
    _show_grid(cells)
    say(f"Table: {out}")


class _Job(NamedTuple):
    recipe: "GainRecipe"
    train: "Dataset"
    test: "Dataset"
    """images that the plan evaluates: a GAIN must not learn from them"""
    threads: int


def _job(path: Path, epochs: int | None) -> _Job:
    from dataclasses import replace

    from roadworthy.evaluation.checks import check_apart
    from roadworthy.experiments.build import build_data
    from roadworthy.experiments.plans import read_plan

    plan = read_plan(path)
    if plan.gain is None:
        raise PlanError(f"{path}: [gain] is missing: copy it from plans/gain-cifar10.toml")
    train_images, test_images = build_data(plan, "train"), build_data(plan)
    check_apart(train_images, test_images)
    return _Job(replace(plan.gain, epochs=epochs or plan.gain.epochs), train_images, test_images, plan.threads)


def _show_quality(rows: "list[Quality]") -> None:
    """Imputation MSE on the images to evaluate: a row per kind of mask and fraction, a column per imputer."""
    from roadworthy.report.terminal import titled_table

    names = list(dict.fromkeys(row.imputer for row in rows))
    title = f"Imputation MSE on {rows[0].images:,} images"
    table = titled_table(title, "masks", "removed", *names, numbers=("removed", *names))
    for masks, fraction in dict.fromkeys((row.masks, row.fraction) for row in rows):
        errors = {row.imputer: row.mse for row in rows if (row.masks, row.fraction) == (masks, fraction)}
        table.add_row(masks, f"{fraction:.0%}", *(f"{errors[name]:.5f}" for name in names))
    console.print(table)


def _show_grid(cells: "list[Cell]") -> None:
    from roadworthy.report.terminal import titled_table

    hints = list(dict.fromkeys(cell.hint for cell in cells))
    columns = ("alpha", *(f"hint {hint:g}" for hint in hints))
    table = titled_table("Imputation MSE, held out", *columns, numbers=columns)
    by_setting = {(cell.alpha, cell.hint): cell for cell in cells}
    for alpha in dict.fromkeys(cell.alpha for cell in cells):
        row = (by_setting[alpha, hint] for hint in hints)
        table.add_row(f"{alpha:g}", *("failed" if cell.failure else f"{cell.imputation:.5f}" for cell in row))
    console.print(table)
    for cell in cells:
        if cell.failure:
            say(cell.failure)
