"""What a plan means, shown before it is run: its grid, its items, how many are missing, what they would cost."""

from collections.abc import Iterable

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from roadworthy.core.progress import progress_bar
from roadworthy.experiments.build import awaits_training, build_data
from roadworthy.experiments.cost import Estimate, estimate, outlook
from roadworthy.experiments.plans.plan import Plan
from roadworthy.experiments.runner import Work
from roadworthy.experiments.stores.run_directory import Store

console = Console()


def show_forecast(plan: Plan, name: str, store: Store) -> None:
    """The grid comes first: it needs no data, and is there to look at if an error follows."""
    console.print(_grid(plan, name))
    build_data(plan)
    work = outlook(plan, store)
    console.print(f"{work.missing:,} of {work.total:,} items are missing from {store.root}", highlight=False)
    if not work.missing:
        return
    console.print("timing a few images ...", highlight=False)
    with progress_bar("timing", None):
        cost = estimate(plan)
    console.print(_bill(plan, work, cost))


def _grid(plan: Plan, name: str) -> Table:
    axes: dict[str, Iterable[object]] = {
        "methods": plan.methods,
        "controls": plan.controls,
        "blurred": plan.blurred,
        "strategies": plan.strategies,
        "orders": plan.orders,
        "imputers": [f"{one} (to be trained)" if one in plan.trained_imputers else one for one in plan.imputers],
        "evaluators": plan.evaluators,
        "fractions": [f"{fraction:g}" for fraction in plan.fractions],
        "seeds": plan.seeds,
    }
    table = _table(name)
    table.add_column("axis")
    table.add_column("count", justify="right")
    table.add_column("values", overflow="fold")
    for axis, values in axes.items():
        if listed := [escape(str(value)) for value in values]:
            table.add_row(axis, str(len(listed)), ", ".join(listed))
    return table


def _bill(plan: Plan, work: Work, cost: Estimate) -> Table:
    table = _table("Estimated cost of what is missing")
    table.caption = escape(_circumstances(plan, cost))
    table.add_column("items")
    for heading in ("all", "missing", "about"):
        table.add_column(heading, justify="right")
    spent = 0.0
    for kind, (missing, there), seconds in (
        ("maps", _maps(work), cost.maps),
        ("points", (len(work.missing_trials), len(work.trials)), cost.trials),
        ("trainings", _trainings(work), cost.trainings),
        ("the model itself", (1, 1) if cost.model else (0, 0), cost.model),
    ):
        if there:
            spent += seconds * missing / there
            table.add_row(kind, f"{there:,}", f"{missing:,}", span(seconds * missing / there))
    table.add_section()
    table.add_row("in sum", "", "", span(spent), style="bold")
    return table


def _table(title: str) -> Table:
    return Table(title=escape(title), title_justify="left", title_style="bold", caption_justify="left")


def _circumstances(plan: Plan, cost: Estimate) -> str:
    learned = f", {cost.train_images:,} train images" if cost.train_images else ""
    threads = "1 thread" if plan.threads == 1 else f"{plan.threads} threads"
    fresh = "; timed with fresh weights: `roadworthy train` makes them" if awaits_training(plan) else ""
    return f"{cost.images:,} images{learned}; one job of {threads} on this machine{fresh}"


def _maps(work: Work) -> tuple[int, int]:
    """missing, all; of both splits"""
    missing = len(work.missing_maps) + len(work.missing_train_maps)
    return missing, len(work.maps) + len(work.train_maps)


def _trainings(work: Work) -> tuple[int, int]:
    """missing, all; a retrained point is a training, and those without removal share one"""
    retrained = {item.id for point, item in work.trials.items() if point.evaluator == "retrain"}
    missing = {work.trials[point].id for point in work.missing_trials if point.evaluator == "retrain"}
    others = len(work.missing_models) + len(work.missing_imputers)
    return len(missing) + others, len(retrained) + len(work.models) + len(work.imputers)


def span(seconds: float) -> str:
    """
    >>> span(5400), span(86400 * 1000)
    ('90 minutes', '2.7 years')
    """
    units = ((31557600, "years"), (86400, "days"), (3600, "hours"), (60, "minutes"), (1, "seconds"))
    size, unit = next(((size, unit) for size, unit in units if seconds >= 2 * size), (1, "seconds"))
    count = seconds / size
    return f"{count:.1f} {unit}" if count < 10 and size > 1 else f"{count:,.0f} {unit}"
