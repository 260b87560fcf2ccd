"""A progress bar for work that takes longer than two seconds, shown in terminals and notebooks only."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Timer

PATIENCE = 2.0
"""Seconds before a bar appears."""

Advance = Callable[[float], None]


@contextmanager
def progress_bar(title: str, total: float | None, show: bool = True) -> Iterator[Advance]:
    """A context that yields `advance(steps)`."""
    if not (show and _is_interactive()):
        yield lambda steps: None
        return
    # Imported here: importing rich draws from Python's global random generator; importing this package must not.
    from rich.console import Console
    from rich.progress import Progress, TimeElapsedColumn

    bar = Progress(*Progress.get_default_columns(), TimeElapsedColumn(), console=Console(stderr=True), transient=True)
    task = bar.add_task(title, total=total)
    timer = Timer(PATIENCE, bar.start)
    timer.start()
    try:
        yield lambda steps: bar.advance(task, steps)
    finally:
        timer.cancel()
        timer.join()
        bar.stop()


def _is_interactive() -> bool:
    return sys.stderr.isatty() or "ipykernel" in sys.modules
