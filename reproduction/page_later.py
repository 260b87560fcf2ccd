"""What later papers ask, for docs/reproduction.md: filters, the explained class, other models, early stopping."""

import pandas as pd

from reproduction.later import MADE_RIGHT
from reproduction.stopping import QUESTIONS as STOPPING_QUESTIONS
from reproduction.tables import (
    METHODS,
    NOT_RUN,
    ORDERS,
    Results,
    markdown,
    only,
    percent,
    percent_points,
    spread,
    where,
)

SCORES = {"srg": "srg", "morf": "MoRF area", "lerf": "LeRF area"}
SETUP = "CIFAR-10, the explained ResNet-18, no-retrain, linear imputation"


def filtered(results: Results) -> str:
    title = "## Does blurring or sharpening a map improve its score?"
    table = results.table("filtered")
    if table.empty:
        return f"{title}\n\n{NOT_RUN.capitalize()}: `plans/cifar10-tables-filtered.toml`."
    filters = list(dict.fromkeys(table["filter"]))
    rows = [
        (method, *(_change(only(table, method=method, filter=one, score="srg")) for one in filters))
        for method in METHODS
    ]
    counts = [
        (
            one,
            *(
                f"{better} better, {worse} worse"
                for better, worse in (_significant(table, one, score) for score in SCORES)
            ),
        )
        for one in filters
    ]
    return f"""{title}

A filter adds no information to a map (arXiv:2304.13836). {SETUP}, {int(table["images"].iloc[0]):,} images. Blurred by a Gaussian, or
sharpened by unsharp masking, of this many pixels. For how many of the eight methods the score improves or worsens beyond
its interval (a lower MoRF area, a higher LeRF area and a higher srg = LeRF − MoRF are better):

{markdown(("filter", *SCORES.values()), counts)}

The change of srg in percentage points, paired over images:

{markdown(("method", *filters), rows)}"""


def _significant(table: pd.DataFrame, one: str, score: str) -> tuple[int, int]:
    """How many methods the filter improves, and worsens, beyond the interval."""
    rows = where(table, filter=one, score=score)
    up, down = int(rows["low"].gt(0).sum()), int(rows["high"].lt(0).sum())
    return (down, up) if score == "morf" else (up, down)


def _change(row: pd.Series) -> str:
    return percent_points(row["change"], row["low"], row["high"])


def targets(results: Results) -> str:
    title = "## Label or prediction?"
    table = results.table("targets")
    if table.empty:
        return f"{title}\n\n{NOT_RUN.capitalize()}: `plans/cifar10-tables-prediction.toml`."
    ranks = {name: table[name].rank(ascending=False).astype(int) for name in ("label", "prediction")}
    rows = [
        (
            row.method,
            f"{100 * row.label:.1f} ({ranks['label'][row.Index]})",
            f"{100 * row.prediction:.1f} ({ranks['prediction'][row.Index]})",
            percent_points(row.change, row.low, row.high),
            percent(row.right_label),
            percent(row.right_prediction),
        )
        for row in table.itertuples()
    ]
    same = "the same" if list(ranks["label"]) == list(ranks["prediction"]) else "not the same"
    head = ("method", "label, srg (rank)", "prediction", "change", "made right, label", "made right, prediction")
    return f"""{title}

By default a map explains the label, as in the paper; then it knows the label (docs/targets.md). {SETUP},
{int(table["images"].iloc[0]):,} images: srg in percentage points with maps of the label and of the predicted class, and the change, paired over
images. *Made right* is the percentage of wrongly predicted images that become right when the {MADE_RIGHT:.0%} least relevant pixels
are removed. The order of the eight methods is {same}.

{markdown(head, rows)}"""


def carried(results: Results) -> str:
    title = "## Do rankings and maps carry over to another model?"
    table, agreement = results.table("carried"), results.table("carried-agreement")
    if table.empty:
        return f"{title}\n\n{NOT_RUN.capitalize()}: `plans/cifar10-tables-resnet20.toml`, `plans/cifar10-tables-carried.toml`."
    rows = [
        (
            f"{row.model}, {row.method}",
            f"{100 * row.own:.1f}",
            f"{100 * row.carried:.1f}",
            percent_points(row.change, row.low, row.high),
        )
        for row in table.itertuples()
    ]
    pairs = list(dict.fromkeys(zip(agreement.get("model_a", ()), agreement.get("model_b", ()), strict=True)))
    cells = [
        (f"{a} ~ {b}", *(_agreement(where(agreement, order=order, model_a=a, model_b=b)) for order in ORDERS))
        for a, b in pairs
    ]
    ranked = markdown(("rankings", *ORDERS.values()), cells) if cells else f"Agreement of the rankings: {NOT_RUN}."
    return f"""{title}

The explained ResNet-18 and a pretrained ResNet-20, each with its own normalization and with its own maps and those of the
other; linear imputation, no-retrain, fractions .1 to .9 in steps of .2, {int(table["images"].iloc[0]):,} test images. srg in percentage points, and by
how much foreign maps change it, paired over images:

{markdown(("evaluated model, method", "own maps", "maps of the other", "change"), rows)}

Agreement of the rankings of the eight methods (Spearman, averaged over fractions, with its interval over images):

{ranked}"""


def _agreement(rows: pd.DataFrame) -> str:
    return NOT_RUN if rows.empty else spread(*rows.iloc[0][["spearman", "low", "high"]])


def stopping(results: Results) -> str:
    title = "## How many images does early stopping need?"
    table = results.table("stopping")
    if table.empty:
        return f"{title}\n\n{NOT_RUN.capitalize()}."
    total, orderings = int(table["images"].iloc[0]), table["ordering"].nunique()
    rows = [
        (
            f'`until="{until}"`, {population}',
            *(_needed(part[question], total) for question in STOPPING_QUESTIONS),
            _saved(part["best" if until == "best" else "all"], total),
            int(part["reversed"].sum()),
        )
        for (until, population), part in table.groupby(["until", "population"], sort=False)
    ]
    head = ("rule, population", "the best", "the first three", "the order of all", "saved", "reversed")
    return f"""{title}

{SETUP}: the eight methods with the {total:,} images in {orderings} random orders, looked at as `compare` does, with the error
shared as by default (three controls, copies of any method). Each cell: images until the question is decided, the mean over
the orders (an order that leaves it open counts as all images) and in how many orders it was decided. A place is *decided* if
its method is separated from all that follow, or tied within the margin. `until="best"` asks for the best alone. *Saved*: the
share of the whole cost when the rule stops, maps included: maps and predictions are computed only for images that were
taken. *Reversed*: pairs that were separated, but the other way round on all {total:,} images, summed over the orders. Population
*infinite*: statements about images like these; *finite*: about these images.

{markdown(head, rows)}"""


def _needed(counts: pd.Series, total: int) -> str:
    """The mean of images, and how many orders were decided.

    >>> _needed(pd.Series([100.0, float("nan")]), 500), _needed(pd.Series([float("nan")]), 500)
    ('300 (1 of 2)', '–')
    """
    if counts.isna().all():
        return "–"
    return f"{counts.fillna(total).mean():,.0f} ({counts.notna().sum()} of {len(counts)})"


def _saved(counts: pd.Series, total: int) -> str:
    return f"{percent(1 - counts.fillna(total).mean() / total, 0)} %"
