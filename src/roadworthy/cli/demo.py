"""`roadworthy demo`."""

import time
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from roadworthy.cli.output import say
from roadworthy.core.progress import progress_bar


class DemoData(StrEnum):
    digits = "digits"
    cifar10 = "cifar10"


def demo(
    data: Annotated[
        DemoData, typer.Option(help="Data set: digits needs the demo extra, cifar10 is read from --root.")
    ] = (DemoData.digits),
    root: Annotated[Path, typer.Option(help="Folder with cifar-10-batches-bin/ and weights/.")] = Path("data"),
    images: Annotated[int, typer.Option(min=2, help="Number of test images.")] = 500,
    out: Annotated[Path, typer.Option(help="HTML file to write.")] = Path("roadworthy-demo.html"),
) -> None:
    """Rank the paper's eight methods and the controls on real images, and write a report.

    Example: `roadworthy demo --data cifar10 --root data --images 500`
    """
    from roadworthy.cli.results import show_comparison
    from roadworthy.experiments import demo as demos
    from roadworthy.experiments.compare import compare

    started = time.monotonic()
    with progress_bar("preparing data and model", demos.RECIPE.epochs) as advance:
        study = (
            demos.cifar10_demo(root, images)
            if data is DemoData.cifar10
            else demos.digits_demo(images, on_epoch=lambda record: advance(1))
        )
    if study.accuracy is not None:
        say(f"A small CNN trained on 4,000 digits: {study.accuracy:.1%} on 1,000 held-out ones.")
    comparison = compare(study.model, study.data, study.methods, imputers=["linear", "fixed"], batch_size=125)
    show_comparison(comparison)
    page = comparison.report(out)
    say(f"\nPage: {page}   ({time.monotonic() - started:.0f} s)")
