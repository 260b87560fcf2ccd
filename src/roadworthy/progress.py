"""A progress bar for anything longer than two seconds; quiet where nobody looks."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

PATIENCE = 2.0
"""Seconds before a bar appears."""


@contextmanager
def progress_bar(title: str, total: float | None, show: bool = True) -> Iterator[Callable[[float], None]]:
    """Yields `advance(steps)`."""
    console = Console(stderr=True)
    if not (show and (console.is_terminal or console.is_jupyter)):
        yield lambda steps: None
        return
    bar = Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(),
        console=console, transient=True,
    )  # fmt: skip
    task = bar.add_task(title, total=total)
    start = time.monotonic()

    def advance(steps: float) -> None:
        bar.advance(task, steps)
        if not bar.live.is_started and time.monotonic() - start > PATIENCE:
            bar.start()

    try:
        yield advance
    finally:
        if bar.live.is_started:
            bar.stop()
