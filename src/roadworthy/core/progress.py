"""Progress of anything longer than two seconds: a bar on a terminal or in a notebook, elsewhere a line now and then."""

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Timer
from typing import Any, Protocol

from roadworthy.core.text import printable

PATIENCE = 2.0
"""Seconds before a bar appears."""
FIRST_LINE, LONGEST_PAUSE = 30.0, 600.0
"""Seconds before the first line where there is no terminal; the pause doubles after each, up to the longest."""

Advance = Callable[[float], None]


class _Display(Protocol):
    def show(self, title: str, share: float | None, note: str) -> None: ...
    def line(self, text: str) -> None: ...
    def stop(self) -> None: ...


class ProgressBar:
    """Counts steps towards a total, or shows the share that it is given; its title may change while it runs."""

    def __init__(self, title: str, show: bool = True, total: float | None = None):
        self._title, self._total, self._done = title, total, 0.0
        self._show = show
        self._display: _Display | None = None

    def start(self) -> None:
        if self._show:
            self._display = _bar(self._title) if _is_interactive() else _Lines(self._title)

    def advance(self, steps: float) -> None:
        self._done += steps
        counted = f"{self._done:,.0f} of {self._total:,.0f}" if self._total else f"{self._done:,.0f}"
        self.show(share=self._done / self._total if self._total else None, note=counted)

    def show(self, title: str = "", share: float | None = None, note: str = "") -> None:
        """`share`: how much is done, of 1; None: unknown."""
        if self._display:
            self._display.show(printable(title or self._title), share, note)

    def line(self, text: str) -> None:
        """Write a line that stays."""
        if self._display:
            self._display.line(printable(text))

    def stop(self) -> None:
        if self._display:
            self._display.stop()


@contextmanager
def progress_bar(title: str, total: float | None, show: bool = True) -> Iterator[Advance]:
    """Yields `advance(steps)`."""
    bar = ProgressBar(title, show, total)
    bar.start()
    try:
        yield bar.advance
    finally:
        bar.stop()


def about(seconds: float) -> str:
    """A duration in round numbers.

    >>> about(3), about(41), about(100), about(5400), about(86400 * 3)
    ('about 5 s', 'about 45 s', 'about 2 min', 'about 90 min', 'about 3 days')
    """
    if seconds < 55:
        return f"about {max(5, 5 * round(seconds / 5 + 0.49))} s"
    for size, unit in ((86400, "days"), (3600, "h")):
        if seconds >= 2 * size:
            return f"about {seconds / size:.0f} {unit}"
    return f"about {max(1, round(seconds / 60))} min"


def _is_interactive() -> bool:
    """A dumb terminal cannot move its cursor: it gets lines."""
    terminal = sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    return terminal or "ipykernel" in sys.modules


class _Lines:
    """A line to standard error now and then: a log of hours stays short."""

    def __init__(self, title: str):
        self._title, self._started, self._pause = title, time.monotonic(), FIRST_LINE
        self._next = self._started + self._pause

    def show(self, title: str, share: float | None, note: str) -> None:
        now = time.monotonic()
        if now < self._next:
            return
        self._pause = min(2 * self._pause, LONGEST_PAUSE)
        self._next = now + self._pause
        stage = title if title.startswith(self._title) else f"{self._title}: {title}"
        so_far = about(now - self._started).removeprefix("about ")
        self.line(f"{stage} ({', '.join(filter(None, [note, f'{so_far} so far']))})")

    def line(self, text: str) -> None:
        if sys.stderr is not None:
            with suppress(OSError, ValueError):  # closed or full: the work goes on
                sys.stderr.write(f"{text}\n")
                sys.stderr.flush()

    def stop(self) -> None:
        pass


def _bar(title: str) -> _Display | None:
    bar = _Bar(title)
    try:
        bar.start()
    except RuntimeError:  # no memory for a thread: work goes on without a bar
        return None
    return bar


class _Bar:
    """Rich's bar, which appears after a while and disappears in the end."""

    def __init__(self, title: str):
        # Imported here: loading rich draws from Python's global random generator, and importing us must not.
        from rich.console import Console
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
        from rich.table import Column

        columns = (
            SpinnerColumn(),
            # As wide as most titles: what is to its right stays in its place.
            TextColumn("{task.description}", markup=False, table_column=Column(min_width=32, no_wrap=True)),
            BarColumn(bar_width=12),
            TextColumn("{task.fields[note]}", markup=False),
            TimeElapsedColumn(),
        )
        self._progress: Any = Progress(*columns, console=Console(stderr=True), transient=True)
        self._task = self._progress.add_task(printable(title), total=None, note="")
        self._timer = Timer(PATIENCE, self._progress.start)

    def start(self) -> None:
        self._timer.start()

    def show(self, title: str, share: float | None, note: str) -> None:
        # An unknown share moves to and fro; a bar at 0 % would look stuck.
        known = {"total": 1.0, "completed": share} if share else {"total": None, "completed": 0}
        self._progress.update(self._task, description=title, note=note, **known)

    def line(self, text: str) -> None:
        self._progress.console.out(text, highlight=False)

    def stop(self) -> None:
        self._timer.cancel()
        self._timer.join()
        self._progress.stop()
