"""The command `roadworthy`: each command is a docstring with an example, and one call."""

import time
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from roadworthy import __version__
from roadworthy.cli.audit import audits
from roadworthy.cli.gain import gain
from roadworthy.cli.imputers import imputers
from roadworthy.cli.results import runs
from roadworthy.cli.run import lab
from roadworthy.cli.train import models
from roadworthy.core.errors import RoadworthyError
from roadworthy.core.progress import Advance, progress_bar
from roadworthy.datasets.download import ARCHIVES, fetch
from roadworthy.experiments import demo
from roadworthy.experiments.compare import compare
from roadworthy.experiments.registry import REGISTRY
from roadworthy.report.terminal import show

console = Console()


class Commands(typer.core.TyperGroup):
    """Turns our own errors into one red line and exit code 1: they name the thing and the cure already."""

    def invoke(self, ctx: typer.Context) -> object:  # type: ignore[override]
        try:
            return super().invoke(ctx)
        except RoadworthyError as error:
            Console(stderr=True).print(f"[bold red]error:[/] {type(error).__name__}:", end=" ")
            Console(stderr=True).print(str(error), markup=False, highlight=False)
            raise typer.Exit(1) from error


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    add_completion=False,
)
data = typer.Typer(no_args_is_help=True, help="Data sets on disk.")
app.add_typer(data, name="data")
app.add_typer(gain, name="gain")
app.add_typer(models)
app.add_typer(lab)
app.add_typer(audits)
app.add_typer(runs)
app.add_typer(imputers, name="imputers")


class DemoData(StrEnum):
    digits = "digits"
    cifar10 = "cifar10"


Archive = StrEnum("Archive", {name: name for name in ARCHIVES})  # type: ignore[misc]


def _version(wanted: bool) -> None:
    if wanted:
        console.print(f"roadworthy {__version__}", highlight=False)
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show it.")] = False,
) -> None:
    """Which explanation can you trust? Remove pixels as each method claims, debias, measure (ROAD).

    Example: `roadworthy demo`
    """


@app.command("demo")
def run_demo(
    data: Annotated[DemoData, typer.Option(help="digits come with the demo extra; cifar10 is read from --root.")] = (
        DemoData.digits
    ),
    root: Annotated[Path, typer.Option(help="Folder with cifar-10-batches-bin/ and weights/.")] = Path("data"),
    images: Annotated[int, typer.Option(min=2, help="How many test images to evaluator.")] = 500,
    out: Annotated[Path, typer.Option(help="The page to write.")] = Path("roadworthy-demo.html"),
) -> None:
    """Rank the paper's eight methods and the controls on real images, and write a page to look at.

    Example: `roadworthy demo --data cifar10 --root data --images 500`
    """
    started = time.monotonic()
    with progress_bar("preparing data and model", demo.RECIPE.epochs) as advance:
        study = (
            demo.cifar10_demo(root, images)
            if data is DemoData.cifar10
            else demo.digits_demo(images, on_epoch=lambda record: advance(1))
        )
    if study.accuracy is not None:
        console.print(f"A small CNN trained on 4,000 digits: {study.accuracy:.1%} on 1,000 held-out ones.")
    comparison = compare(study.model, study.data, study.methods, imputer=["linear", "fixed"], batch_size=125)
    show(comparison)
    page = comparison.report(out)
    console.print(f"\nPage: {page}   ({time.monotonic() - started:.0f} s)", highlight=False, markup=False)


@app.command("parts")
def show_parts() -> None:
    """List what is there, by the names that the command line and the library take.

    Example: `roadworthy parts`
    """
    for family, parts in REGISTRY.items():
        console.print(f"\n[bold]{family}[/]")
        for name, part in parts.items():
            console.print(f"  {name:18} {part.summary}", markup=False, highlight=False)


@data.command("get")
def get(
    name: Annotated[Archive, typer.Argument(help="Which data set.")],
    root: Annotated[Path, typer.Option(help="Folder to put it in.")] = Path("data"),
) -> None:
    """Fetch a data set's official archive, check it and unpack it; run again to resume.

    Example: `roadworthy data get cifar10 --root data`
    """
    with progress_bar(f"fetching {name.value} (MB)", None) as advance:
        folder = fetch(name.value, root, on_bytes=_steps(advance))
    console.print(f"{folder} is ready.", markup=False, highlight=False)


def _steps(advance: Advance) -> Callable[[int, int | None], None]:
    """From "so many bytes are done" to "so many megabytes more"."""
    before = 0

    def on_bytes(done: int, total: int | None) -> None:
        nonlocal before
        advance((done - before) / 1e6)
        before = done

    return on_bytes
