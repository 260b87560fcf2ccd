"""The app: groups and commands, how errors are shown, `--version` and `list`."""

from textwrap import fill
from typing import Annotated

import typer

from roadworthy import __version__
from roadworthy.cli import audit, data, demo, diff, gain, imputers, results, run, self_test, train
from roadworthy.cli.output import SafeConsole, console, say
from roadworthy.core.errors import RoadworthyError


class Commands(typer.core.TyperGroup):
    """Shows our own errors as one line with exit code 1: they name the thing and the cure already."""

    def invoke(self, ctx: typer.Context) -> object:  # type: ignore[override]
        try:
            return super().invoke(ctx)
        except RoadworthyError as error:
            errors = SafeConsole(stderr=True)
            errors.print(f"[bold red]error:[/] {type(error).__name__}:", end=" ")
            errors.print(str(error), markup=False, highlight=False)
            raise typer.Exit(1) from error


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    add_completion=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        console.print(f"roadworthy {__version__}", highlight=False)
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Which explanation can you trust? Rank attribution methods with ROAD: remove pixels, impute them, predict again.

    Example: `roadworthy demo`
    """


START, RUN, READ, TRAIN = "First steps", "Run an experiment", "Read its results", "Networks and imputers"
"""The panels of `roadworthy --help`, in this order."""

app.command("demo", rich_help_panel=START)(demo.demo)


@app.command("list", rich_help_panel=START)
def list_registry() -> None:
    """List the names that plans and Python accept: methods, orders, imputers, data sets, models.

    Example: `roadworthy list`
    """
    from roadworthy.experiments.registry import REGISTRY

    for family, entries in REGISTRY.items():
        console.print(f"\n[bold]{family}[/]")
        for name, entry in entries.items():
            say(fill(entry.summary, console.width, initial_indent=f"  {name:17} ", subsequent_indent=20 * " "))


app.command("self-test", rich_help_panel=START)(self_test.self_test)
app.add_typer(data.app, name="data", rich_help_panel=START)
app.command("run", rich_help_panel=RUN)(run.run)
app.command("status", rich_help_panel=RUN)(run.status)
app.command("merge", rich_help_panel=RUN)(run.merge)
app.command("audit", rich_help_panel=RUN)(audit.audit)
app.command("show", rich_help_panel=READ)(results.show)
app.command("report", rich_help_panel=READ)(results.report)
app.command("figures", rich_help_panel=READ)(results.figures)
app.command("diff", rich_help_panel=READ)(diff.diff)
app.command("export", rich_help_panel=READ)(results.export)
app.command("train", rich_help_panel=TRAIN)(train.train)
app.add_typer(gain.app, name="gain", rich_help_panel=TRAIN)
app.add_typer(imputers.app, name="imputers", rich_help_panel=TRAIN)
