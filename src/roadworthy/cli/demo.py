"""`roadworthy demo`."""

import time
import webbrowser
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from roadworthy.cli.output import say
from roadworthy.core.progress import progress_bar

if TYPE_CHECKING:
    from roadworthy.experiments.demo import Demo


class DemoData(StrEnum):
    sample = "sample"
    cifar10 = "cifar10"
    digits = "digits"


def demo(
    data: Annotated[
        DemoData,
        typer.Option(
            help="Images: sample, 200 of CIFAR-10 that come with the package; cifar10, all of it, read from --root; "
            "digits, which needs the demo extra and trains a small network first."
        ),
    ] = DemoData.sample,
    root: Annotated[Path, typer.Option(help="Folder with cifar-10-batches-bin/.")] = Path("data"),
    images: Annotated[
        int | None,
        typer.Option(min=2, help="Number of test images. Default: the whole sample, or 500.", show_default=False),
    ] = None,
    out: Annotated[Path, typer.Option(help="HTML file to write.")] = Path("roadworthy-demo.html"),
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    self_test: Annotated[
        bool, typer.Option("--self-test/--no-self-test", help="Test whether the benchmark ranks right here, too.")
    ] = True,
) -> None:
    """Rank the paper's eight methods and the controls on real images, and write a report.

    By default everything comes with the package: no download, no training, about two minutes of processor time.

    Example: `roadworthy demo --open`
    """
    from roadworthy.cli.results import show_comparison
    from roadworthy.core.files import check_output
    from roadworthy.experiments.compare import compare

    started = time.monotonic()
    check_output(out)
    study = _study(data, root, images)
    say(f"{study.about}\nEight methods and the controls, two imputers, {len(study.fractions)} fractions.\n")
    comparison = compare(
        study.model,
        study.data,
        study.methods,
        imputers=["linear", "fixed"],
        fractions=study.fractions,
        self_test=self_test,
        map_batch_size=50,
        batch_size=50,
    )
    with progress_bar("writing the page", None):
        page = comparison.report(out)
    size = f"{page.stat().st_size / 1e6:.1f} MB, {time.monotonic() - started:.0f} s in all"
    show_comparison(comparison, [f"Page: {page}   ({size})"])
    if open_page and not webbrowser.open(page.resolve().as_uri()):
        say(f"No browser was found: open {page} yourself.")


def _study(data: DemoData, root: Path, images: int | None) -> "Demo":
    from roadworthy.experiments import demo as demos

    if data is DemoData.sample:
        return demos.sample_demo(images)
    if data is DemoData.cifar10:
        return demos.cifar10_demo(root, images)
    with progress_bar("training a network on digits", demos.RECIPE.epochs) as advance:
        return demos.digits_demo(images, on_epoch=lambda record: advance(1))
