"""`roadworthy data`: data sets on disk."""

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from roadworthy.cli.output import say
from roadworthy.core.progress import Advance, progress_bar

app = typer.Typer(no_args_is_help=True)


class Archive(StrEnum):
    cifar10 = "cifar10"
    food101 = "food101"
    resnet20_cifar10 = "resnet20-cifar10"


@app.callback()
def _group() -> None:
    """Get data sets and weights.

    Example: `roadworthy data download cifar10`
    """


@app.command("download")
def download(
    name: Annotated[Archive, typer.Argument(help="Data set, or weights that come with the package.")],
    root: Annotated[Path, typer.Option(help="Folder to put it in.")] = Path("data"),
) -> None:
    """Download, verify and unpack the official archive of a data set. Run it again to resume.

    The weights resnet20-cifar10 need no network: they come with the package and are copied to ROOT/weights/. In a plan,
    weights = "resnet20-cifar10" finds them without a copy.

    Example: `roadworthy data download cifar10 --root data`
    """
    from roadworthy.datasets.download import fetch
    from roadworthy.models import WEIGHTS, copy_weights

    if name.value in WEIGHTS:
        say(f"{copy_weights(name.value, root)} is ready.")
        return
    with progress_bar(f"downloading {name.value} (MB)", None) as advance:
        folder = fetch(name.value, root, on_bytes=_steps(advance))
    say(f"{folder} is ready.")


def _steps(advance: Advance) -> Callable[[int, int | None], None]:
    """From the bytes that are done to the megabytes since the last call."""
    before = 0

    def on_bytes(done: int, total: int | None) -> None:
        nonlocal before
        advance((done - before) / 1e6)
        before = done

    return on_bytes
