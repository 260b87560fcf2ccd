"""What `roadworthy run --dry-run` shows: the axes of a plan, what is missing, and what that would cost."""

from collections.abc import Iterable

from rich.markup import escape
from rich.table import Table

from roadworthy.cli.output import announce_code, console, duration, say
from roadworthy.core.progress import progress_bar
from roadworthy.experiments.build import awaits_training, build_data
from roadworthy.experiments.cost import Estimate, estimate, missing_counts
from roadworthy.experiments.plans import Plan
from roadworthy.experiments.stores.run_directory import RunDirectory
from roadworthy.report.terminal import titled_table


def show_dry_run(plan: Plan, name: str, store: RunDirectory) -> None:
    """The axes come first: they need no data, and stay visible if an error follows."""
    console.print(_axes(plan, name))
    if plan.functions:
        say("A dry run builds the model and times every method.")
        announce_code(plan)
    build_data(plan)
    store.check_for_plan()
    missing = missing_counts(plan, store)
    counts = plan.counts()
    say(f"{missing['points']:,} of {counts['points']:,} points are missing from {store.root}")
    if not any(missing.values()):
        return
    say("timing a few images ...")
    with progress_bar("timing", None):
        cost = estimate(plan, missing)
    console.print(_bill(cost))
    say(_circumstances(plan, cost))


def _axes(plan: Plan, name: str) -> Table:
    axes: dict[str, Iterable[object]] = {
        "methods": plan.methods,
        "controls": plan.controls,
        "copied": plan.copied,
        "strategies": plan.strategies,
        "orders": plan.orders,
        "imputers": [f"{name} (to be trained)" if name in plan.trained_imputers else name for name in plan.imputers],
        "evaluators": plan.evaluators,
        "fractions": [f"{fraction:g}" for fraction in plan.fractions],
        "seeds": plan.seeds,
    }
    table = titled_table(name, "axis", "count", "values", numbers=("count",))
    table.columns[-1].overflow = "fold"
    for axis, values in axes.items():
        if listed := [escape(str(value)) for value in values]:
            table.add_row(axis, str(len(listed)), ", ".join(listed))
    return table


def _bill(cost: Estimate) -> Table:
    numbers = ("all", "missing", "about")
    table = titled_table("Estimated cost of what is missing", "work", *numbers, numbers=numbers)
    for row in cost.work:
        table.add_row(row.kind, f"{row.number:,}", f"{row.missing:,}", duration(row.missing_seconds))
    table.add_section()
    table.add_row("total", "", "", duration(cost.seconds), style="bold")
    return table


def _circumstances(plan: Plan, cost: Estimate) -> str:
    train = f", {cost.train_images:,} train images" if cost.train_images else ""
    threads = "1 thread" if plan.threads == 1 else f"{plan.threads} threads"
    fresh = "; timed with untrained weights: `roadworthy train` makes them" if awaits_training(plan) else ""
    early = "; early stopping may need fewer images" if plan.until else ""
    return f"{cost.images:,} images{train}; one process of {threads} on this machine{fresh}{early}"
