"""What later papers ask, for docs/reproduction.md: filters, the explained class, other models, early stopping."""

import pandas as pd

from reproduction.later import MADE_RIGHT
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
    title = "## Does early stopping give the same order?"
    table = results.table("stopping")
    if table.empty:
        return f"{title}\n\n{NOT_RUN.capitalize()}."
    pairs = int(table[["separated", "tied", "undecided"]].iloc[0].sum())
    looks = table.groupby("taken")
    rows = [
        (
            f"{taken:,}",
            f"{part['separated'].mean() + part['tied'].mean():.1f}",
            int(part["reversed"].sum()),
            f"{percent(part['same_order'].mean(), 0)} %",
            f"{percent(part['best'].mean(), 0)} %",
            f"{percent((part['undecided'] == 0).mean(), 0)} %",
        )
        for taken, part in looks
    ]
    total, orderings = int(table["images"].iloc[0]), table["ordering"].nunique()
    head = ("images", f"decided pairs of {pairs}", "of them reversed", "same order", "`best` stops", "`ranked` stops")
    return f"""{title}

{SETUP}: the eight methods with the {total:,} images in {orderings} random orders, looked at after every few images with the anytime-valid
intervals of an earlier, more cautious rule of `until` (present figures: docs/statistics.md). A pair is *decided* when it is separated, or tied within the margin; *reversed* when it is separated,
but the other way round on all {total:,} images (summed over the random orders). *Same order*: all eight methods are ordered
as on all images, decided or not. The last columns: in what share of the orders `until="best"` and `until="ranked"` would have
stopped by then. The samples overlap with all images, the more the larger they are.

{markdown(head, rows)}"""
