"""A progress bar for anything longer than two seconds; silent unless a terminal or a notebook shows it."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Timer
from typing import Any

PATIENCE = 2.0
"""Seconds before a bar appears."""

Advance = Callable[[float], None]


class ProgressBar:
    """A bar whose total and title may change while it runs."""

    def __init__(self, title: str, show: bool = True, total: float | None = None):
        self._title, self._total = title, total
        self._show = show and _is_interactive()
        self._bar: Any = None

    def start(self) -> None:
        if not self._show:
            return
        # Imported here: loading rich draws from Python's global random generator, and importing us must not.
        from rich.console import Console
        from rich.progress import Progress, TimeElapsedColumn

        columns = (*Progress.get_default_columns(), TimeElapsedColumn())
        self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
        self._task = self._bar.add_task(self._title, total=self._total)
        self._timer = Timer(PATIENCE, self._bar.start)
        try:
            self._timer.start()
        except RuntimeError:  # no memory for a thread: work goes on without a bar
            self._bar = None

    def total(self, total: float) -> None:
        if self._bar:
            self._bar.update(self._task, total=total)

    def advance(self, steps: float, title: str = "") -> None:
        if self._bar:
            self._bar.update(self._task, advance=steps, description=title or self._title)

    def stop(self) -> None:
        if self._bar:
            self._timer.cancel()
            self._timer.join()
            self._bar.stop()


@contextmanager
def progress_bar(title: str, total: float | None, show: bool = True) -> Iterator[Advance]:
    """Yields `advance(steps)`."""
    bar = ProgressBar(title, show, total)
    bar.start()
    try:
        yield bar.advance
    finally:
        bar.stop()


def _is_interactive() -> bool:
    return sys.stderr.isatty() or "ipykernel" in sys.modules
