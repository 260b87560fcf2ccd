"""The app: groups and commands, how errors are shown, `--version` and `list`."""

from typing import Annotated

import typer

from roadworthy import __version__
from roadworthy.cli import audit, data, demo, diff, gain, imputers, results, run, train
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


app.command("demo")(demo.demo)
app.command("run")(run.run)
app.command("status")(run.status)
app.command("show")(results.show)
app.command("report")(results.report)
app.command("figures")(results.figures)
app.command("audit")(audit.audit)
app.command("diff")(diff.diff)
app.command("export")(results.export)
app.command("merge")(run.merge)
app.command("train")(train.train)


@app.command("list")
def list_registry() -> None:
    """List the names that plans and Python accept: methods, orders, imputers, data sets, models.

    Example: `roadworthy list`
    """
    from roadworthy.experiments.registry import REGISTRY

    for family, entries in REGISTRY.items():
        console.print(f"\n[bold]{family}[/]")
        for name, entry in entries.items():
            say(f"  {name:18} {entry.summary}")


app.add_typer(data.app, name="data")
app.add_typer(gain.app, name="gain")
app.add_typer(imputers.app, name="imputers")
