"""What several commands share: arguments, a console, and how things are printed and written."""

import io
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from roadworthy.core.errors import InputError, MissingExtraError, StoreError
from roadworthy.core.files import check_output, write_atomically
from roadworthy.core.text import csv_bytes, printable

if TYPE_CHECKING:
    import pandas as pd

    from roadworthy.experiments.comparison import Comparison
    from roadworthy.experiments.plans import Plan


class SafeConsole(Console):
    """Shows control characters instead of sending them to the terminal: names and errors may come from others."""

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(printable(text), **options)


console = SafeConsole()

PlanPath = Annotated[Path, typer.Argument(help="Plan in TOML; see plans/ for examples.", show_default=False)]
StorePath = Annotated[Path, typer.Argument(help="Run directory.", show_default=False)]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be done without doing it.")]
Jobs = Annotated[int, typer.Option(min=0, help="Number of processes. 0: cores divided by the plan's threads.")]


def say(text: str) -> None:
    """Print text that may hold names chosen by users, as it is."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)


def warn(text: str) -> None:
    SafeConsole(stderr=True).print(f"warning: {text}", markup=False, highlight=False, soft_wrap=True)


def warn_all(lines: list[str]) -> None:
    for line in lines:
        warn(line)


@contextmanager
def resumable(message: str) -> Iterator[None]:
    """Ctrl-C and SIGTERM end the command with this message and exit code 130."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        say(message)
        raise typer.Exit(130) from None
    finally:
        signal.signal(signal.SIGTERM, before)


def announce_code(plan: "Plan") -> None:
    """Before it is run: which code a plan names."""
    if names := plan.functions:
        say(f"This runs code that the plan names: {', '.join(names)} (beside it in {plan.folder}, or installed).")


def load_run(folder: Path, plan: Path | None = None) -> "Comparison":
    """The results in a run directory; incomplete curves are left out, with a warning."""
    from roadworthy.experiments.run import load

    if not folder.is_dir():
        raise StoreError(f"{folder} is not a run directory: make one with `roadworthy run PLAN --store {folder}`")
    comparison = load(folder, plan)
    missing = comparison.results.missing
    if missing is not None and len(missing):
        curves = "1 curve is" if len(missing) == 1 else f"{len(missing):,} curves are"
        warn(f"{folder}: {curves} incomplete and left out")
    return comparison


_TABLES = (".csv", ".parquet", ".json")


def check_table(file: Path) -> None:
    """Before long work: can a table be written to this file?"""
    if file.suffix not in _TABLES:
        raise InputError(f"{file}: tables are written as {', '.join(_TABLES)}")
    check_output(file)


def write_table(table: "pd.DataFrame", file: Path) -> None:
    """As CSV, Parquet or JSON records, by the file's suffix."""
    check_table(file)
    write_atomically(file, csv_bytes(table) if file.suffix == ".csv" else _encoded(table, file.suffix))


def _encoded(table: "pd.DataFrame", suffix: str) -> bytes:
    buffer = io.BytesIO()
    try:
        if suffix == ".json":
            table.to_json(buffer, orient="records")
        else:
            table.to_parquet(buffer, index=False)
    except ImportError as error:
        raise MissingExtraError("Parquet needs pyarrow: pip install 'roadworthy[parquet]'") from error
    return buffer.getvalue()


def duration(seconds: float) -> str:
    """
    >>> duration(5400), duration(86400 * 1000)
    ('90 minutes', '2.7 years')
    """
    units = ((31557600, "years"), (86400, "days"), (3600, "hours"), (60, "minutes"), (1, "seconds"))
    size, unit = next(((size, unit) for size, unit in units if seconds >= 2 * size), (1, "seconds"))
    count = seconds / size
    return f"{count:.1f} {unit}" if count < 10 and size > 1 else f"{count:,.0f} {unit}"
