"""The tables of a self-test, formatted for people, and the curves of the scope."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pandas as pd

from roadworthy.report.html.curves import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, Marker
from roadworthy.report.html.scales import Axis, Tick
from roadworthy.report.labels import spread
from roadworthy.report.tables import setting_title

_SCORES = {"srg": "LeRF − MoRF", "morf": "MoRF", "lerf": "LeRF"}
_TITLES = {"confidence": "confidence in the predicted class", "distance": "distance to real images"}


class Line(NamedTuple):
    name: str
    path: str
    band: str
    points: Sequence[Marker]
    label: float
    """height of the name at its end"""


class Chart(NamedTuple):
    """The share of images outside of what is usual, against the fraction removed; a line per order."""

    title: str
    label: str
    """for screen readers"""
    lines: Sequence[Line]
    across: Sequence[Tick]
    up: Sequence[Tick]


class Part(NamedTuple):
    title: str
    text: str
    table: pd.DataFrame
    charts: Sequence[Chart] = ()


class SelfTestSection(NamedTuple):
    parts: Sequence[Part]


def section(tables: Mapping[str, pd.DataFrame]) -> SelfTestSection | None:
    """None where there are no tables."""
    parts = [
        Part(title, text, formatted(tables[name]), charts(tables[name]) if name == "scope" else ())
        for name, (title, text, formatted) in _PARTS.items()
        if name in tables and len(tables[name])
    ]
    return SelfTestSection(parts) if parts else None


def charts(scope: pd.DataFrame) -> list[Chart]:
    """One per imputer and measure."""
    groups = scope.groupby(["imputer", "measure"], sort=False)
    return [_chart(str(imputer), str(measure), rows) for (imputer, measure), rows in groups]


def _chart(imputer: str, measure: str, rows: pd.DataFrame) -> Chart:
    x = Axis(0, float(rows["fraction"].max()) or 1.0, LEFT, WIDTH - RIGHT)
    y = Axis(0, 1, HEIGHT - BOTTOM, TOP)
    lines = [_line(_order(str(order)), own, x, y) for order, own in rows.groupby("order", sort=False)]
    heights = spread([line.points[-1].y for line in lines], 15, TOP, HEIGHT - BOTTOM)
    placed = [line._replace(label=height) for line, height in zip(lines, heights, strict=True)]
    title = f"{setting_title(imputer)}: {_TITLES.get(measure, measure)}"
    text = f"{title}. Share of images outside the 95 % range of real images, by fraction removed."
    return Chart(title, text, placed, x.ticks("{:.0%}"), y.ticks("{:.0%}"))


def _line(name: str, rows: pd.DataFrame, x: Axis, y: Axis) -> Line:
    rows = rows.sort_values("fraction")
    numbers = list(zip(*(rows[column].tolist() for column in ("fraction", "outside", "low", "high")), strict=True))
    points = [
        Marker(x.at(share), y.at(value), f"{share:.0%}", f"{value:.1%} [{low:.1%}, {high:.1%}]")
        for share, value, low, high in numbers
    ]
    upper = [f"{x.at(share)},{y.at(high)}" for share, _, _, high in numbers]
    lower = [f"{x.at(share)},{y.at(low)}" for share, _, low, _ in numbers]
    path = "M" + "L".join(f"{point.x},{point.y}" for point in points)
    return Line(name, path, " ".join(upper + lower[::-1]), points, points[-1].y)


def _order(order: str) -> str:
    return {"morf": "MoRF", "lerf": "LeRF"}.get(order, order)


def _interval(table: pd.DataFrame, value: str, low: str = "low", high: str = "high", digits: int = 3) -> list[str]:
    texts = []
    for shown, start, end in zip(table[value], table[low], table[high], strict=True):
        text = f"{shown:.{digits}f} [{start:.{digits}f}, {end:.{digits}f}]".replace("-", "−")
        texts.append("–" if shown != shown else text.removesuffix(" [nan, nan]"))
    return texts


def _setting(table: pd.DataFrame) -> dict[str, pd.Series]:
    several = [name for name in ("imputer", "evaluator", "units") if table[name].nunique() > 1]
    return {name: table[name] for name in several}


def _known_order(table: pd.DataFrame) -> pd.DataFrame:
    smallest = ["–" if value != value else f"{value:.0%}" for value in table["smallest"]]
    return pd.DataFrame(
        {
            "method": table["method"] + table["negative"].map({True: " (nothing is lost)", False: ""}),
            **_setting(table),
            "score": table["score"].map(_SCORES),
            "true order": table["state"],
            "pairs in order": _interval(table, "accuracy", "accuracy_low", "accuracy_high", 2),
            "Spearman": _interval(table, "spearman", "spearman_low", "spearman_high", 2),
            "smallest damage seen": smallest,
        }
    )


def _damage(table: pd.DataFrame) -> pd.DataFrame:
    damaged = table[table["share"] > 0]
    setting = _setting(damaged)
    long = pd.DataFrame(
        {
            "method": damaged["method"],
            **setting,
            "score": damaged["score"].map(_SCORES),
            "share": damaged["share"].map("{:.0%} damaged".format),
            "loss": _interval(damaged, "loss"),
        }
    )
    wide = long.pivot_table(
        index=["method", *setting, "score"], columns="share", values="loss", aggfunc="first", sort=False
    )
    return wide.reset_index().rename_axis(columns=None)


def _changes(table: pd.DataFrame) -> pd.DataFrame:
    shown = table[table["leading"].astype(bool)]
    words = {"blurred": "blurred, {:g} pixels", "sharpened": "sharpened, {:g} pixels", "randomized": "{:.0%} of layers"}
    copies = [words[how].format(amount) for how, amount in zip(shown["how"], shown["amount"], strict=True)]
    columns = {
        "method": shown["method"],
        **_setting(shown),
        "copy": copies,
        "score": shown["original"].map("{:.3f}".format),
        "of the copy": shown["value"].map("{:.3f}".format),
        "change": _interval(shown, "change"),
        **_gammas(shown),
    }
    return pd.DataFrame({**columns, **({"state": shown["state"]} if "state" in shown else {})})


def _gammas(table: pd.DataFrame) -> dict[str, list[str]]:
    """γ before and after, of the orders in which it is known."""
    found = {}
    for order, title in (("morf", "γ in MoRF"), ("lerf", "γ in LeRF")):
        if f"gamma_{order}" in table and table[f"gamma_{order}"].notna().any():
            pairs = zip(table[f"gamma_{order}_original"], table[f"gamma_{order}"], strict=True)
            found[title] = ["–" if after != after else f"{before:.2f} → {after:.2f}" for before, after in pairs]
    return found


def _scope(table: pd.DataFrame) -> pd.DataFrame:
    shown = table.assign(
        order=table["order"].map(_order),
        measure=table["measure"].map(_TITLES),
        share=table["fraction"].map("{:.0%}".format),
    )
    shown = shown.assign(value=[f"{value:.0%}" for value in table["outside"]])
    wide = shown.pivot_table(
        index=["imputer", "order", "measure"], columns="share", values="value", aggfunc="first", sort=False
    )
    return pd.concat([wide.reset_index(), _reference(table)]).fillna("–").rename_axis(columns=None)


def _reference(table: pd.DataFrame) -> pd.DataFrame:
    """R-OMS, which knows no order, as rows of the same shape."""
    shown = table.drop_duplicates(["imputer", "fraction"]).assign(order="random", measure="R-OMS")
    shown = shown.assign(share=shown["fraction"].map("{:.0%}".format), value=shown["r_oms"].map("{:.0%}".format))
    return shown.pivot_table(
        index=["imputer", "order", "measure"], columns="share", values="value", aggfunc="first", sort=False
    ).reset_index()


_PARTS = {
    "known_order": (
        "Is the known order found?",
        "found: damage of all images is clearly seen and no copy is clearly better than a less damaged one. Pairs of "
        "copies in their true order and rank correlation with it, with intervals by resampling images.",
        _known_order,
    ),
    "damage": (
        "What damage costs",
        "By how much a score falls if that share of the images carry another image's map. Intervals hold for all pairs "
        "of copies of a setting, by all scores, together.",
        _damage,
    ),
    "smoothness": (
        "Does smoothing alone move the score?",
        "The leading methods, blurred and sharpened: no copy knows more than its original. Scores of at most three "
        "fractions, of some of the images. Intervals hold for all copies of a setting together. γ, of the original and "
        "of the copy: the share of the removed pixels' variance that linear imputation does not restore, whatever "
        "they mean.",
        _changes,
    ),
    "scope": (
        "Are imputed images still in the model's scope?",
        "Share of the imputed images that lie outside the range of 95 % of the real images: a lower confidence in the "
        "predicted class, or a larger distance of the features before the last layer to the nearest real image of that "
        "class. Of real images, 5 % do. Removal of relevant pixels should lower the confidence; distance does not "
        "depend on that alone. R-OMS: the mean probability of the class that is predicted for the real image, if as "
        "many pixels, or units, are removed at random.",
        _scope,
    ),
    "randomization": (
        "Do the maps depend on what the model learned?",
        "Maps of some of the images, computed on a model with shuffled weights, from the output on, and evaluated on "
        "the real model at at most three fractions. A score "
        "that does not fall is not owed to what the model learned; one near 0 has nowhere to fall.",
        _changes,
    ),
}
