"""A progress bar for anything longer than two seconds; quiet where nobody looks."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Timer

PATIENCE = 2.0
"""Seconds before a bar appears."""

Advance = Callable[[float], None]


@contextmanager
def progress_bar(title: str, total: float | None, show: bool = True) -> Iterator[Advance]:
    """Yields `advance(steps)`."""
    if not (show and _someone_looks()):
        yield lambda steps: None
        return
    # Imported here: loading rich draws from Python's global random generator, and importing us must not.
    from rich.console import Console
    from rich.progress import Progress, TimeElapsedColumn

    bar = Progress(*Progress.get_default_columns(), TimeElapsedColumn(), console=Console(stderr=True), transient=True)
    task = bar.add_task(title, total=total)
    later = Timer(PATIENCE, bar.start)
    later.start()
    try:
        yield lambda steps: bar.advance(task, steps)
    finally:
        later.cancel()
        later.join()
        bar.stop()


def _someone_looks() -> bool:
    return sys.stderr.isatty() or "ipykernel" in sys.modules
