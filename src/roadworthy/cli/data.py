"""`roadworthy data`: data sets on disk."""

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from roadworthy.cli.output import say
from roadworthy.core.progress import Advance, progress_bar

app = typer.Typer(no_args_is_help=True, help="Data sets on disk.")


class Archive(StrEnum):
    cifar10 = "cifar10"
    food101 = "food101"


@app.callback()
def _group() -> None:
    """Data sets on disk."""


@app.command("download")
def download(
    name: Annotated[Archive, typer.Argument(help="The data set.")],
    root: Annotated[Path, typer.Option(help="The folder to put it in.")] = Path("data"),
) -> None:
    """Download a data set's official archive, check it and unpack it. Run it again to resume.

    Example: `roadworthy data download cifar10 --root data`
    """
    from roadworthy.datasets.download import fetch

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
