"""The critical-difference diagram: average ranks over images, and bars over methods that the tests do not separate.

The bars are those of the ranking: paired tests of the score with Holm's correction over all pairs, not a test of the
ranks themselves, whose outcome for two methods depends on which others are compared (Benavoli, Corani and Mangili,
JMLR 17, 2016).
"""

import re
from collections.abc import Collection, Mapping, Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from roadworthy.report.figures.style import GRAY, NOTE, PAGE, literal, setting_name, styled
from roadworthy.report.labels import shortened
from roadworthy.report.palette import Look

_BAR, _LABEL = 0.16, 0.21
"""inches between bars and between labels"""


@styled
def critical_difference(ranks: pd.DataFrame, groups: Sequence[Collection[str]], looks: Mapping[str, Look]) -> Figure:
    """`ranks`: rows of `average_ranks` of one block, best first. `groups`: of methods that are not separated."""
    count, half = len(ranks), -(-len(ranks) // 2)
    bars_height, labels_height = _BAR * (len(groups) + 0.6), _LABEL * (half + 0.4)
    inches = 0.12 + bars_height + labels_height
    figure = Figure(figsize=(PAGE, inches + 1.05), layout="constrained")
    panel = figure.subplots()
    best, last = float(ranks["average_rank"].min()), float(ranks["average_rank"].max())
    left, right = int(best), -int(-last // 1)
    _axis(panel, left, right + (left == right), inches)
    at = dict(zip(ranks["method"], ranks["average_rank"], strict=True))
    for place, group in enumerate(groups):
        members = [at[name] for name in group]
        y = -0.12 - _BAR * (place + 0.5)
        panel.plot([min(members), max(members)], [y, y], color="#000000", linewidth=2.2, solid_capstyle="butt")
        panel.plot(members, [y] * len(members), "o", color="#000000", markersize=3.6)
    start = -0.12 - bars_height
    for place, name in enumerate(ranks["method"]):
        from_left = place < half
        depth = place if from_left else count - 1 - place
        y = start - _LABEL * (depth + 0.5)
        _leader(panel, name, at[name], y, from_left, looks[str(name)])
    first = ranks.iloc[0]
    figure.suptitle(setting_name(first["imputer"], first["evaluator"]) + f", {int(first['images']):,} images")
    figure.supxlabel(
        "Average over images of each method's rank by its own score; 1 is best. A bar joins the methods marked on it:\n"
        "paired tests of the score, Holm's correction over all pairs, do not separate them.",
        fontsize=NOTE, color=GRAY,
    )  # fmt: skip
    return figure


def _axis(panel: Axes, left: int, right: int, inches: float) -> None:
    panel.set_xlim(left, right)
    panel.set_ylim(-inches, 0)
    panel.xaxis.tick_top()
    panel.xaxis.set_label_position("top")
    panel.set_xticks(range(left, right + 1))
    panel.set_xlabel("average rank")
    panel.set_yticks([])
    panel.grid(False)
    panel.spines[["left", "right", "bottom"]].set_visible(False)
    panel.spines["top"].set_visible(True)


def _leader(panel: Axes, name: str, at: float, y: float, from_left: bool, look: Look) -> None:
    """From the axis down, then out to the name."""
    edge = panel.get_xlim()[0 if from_left else 1]
    panel.plot([at, at, edge], [0, y, y], color=look.color, linewidth=0.9, clip_on=False, zorder=1)
    panel.plot([at], [0], look.marker, color=look.color, markersize=5, clip_on=False, label=literal(name))
    short = shortened(name, 24)
    text = f"{short}  {at:.2f}" if from_left else f"{at:.2f}  {short}"
    panel.annotate(literal(text), (edge, y), (-4 if from_left else 4, 0), textcoords="offset points", va="center",
                   ha="right" if from_left else "left", color=look.color, annotation_clip=False)  # fmt: skip


def not_separated(block: pd.DataFrame, shown: Collection[str]) -> list[list[str]]:
    """From the letters of a ranking's block: sets of two and more of the `shown` methods, none within another."""
    members: dict[str, list[str]] = {}
    for method, letters in zip(block["method"], block["groups"], strict=True):
        for letter in re.findall("[a-z]'*", letters) if method in shown else ():
            members.setdefault(letter, []).append(method)
    sets = [frozenset(group) for group in members.values() if len(group) > 1]
    largest = [each for each in dict.fromkeys(sets) if not any(each < other for other in sets)]
    return [[method for method in block["method"] if method in each] for each in largest]
