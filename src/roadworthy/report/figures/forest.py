"""The forest plot: methods ranked by their score, with intervals, and the blind controls as reference lines."""

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from roadworthy.report.figures.style import GRAY, NOTE, SCORE_NAMES, literal, setting_name, styled
from roadworthy.report.labels import shortened, spread
from roadworthy.report.palette import Look
from roadworthy.statistics import SCORES, Standing

WIDTH = 5.4


@styled
def forest(standing: Standing, looks: Mapping[str, Look], confidence: float) -> Figure:
    """The methods of one evaluator and imputer, best on top.

    Filled markers: clearly better than every blind control, by the simultaneous intervals of the differences. The gray
    area is what a map reaches that does not use the model.
    """
    names = list(standing.methods)
    figure = Figure(figsize=(WIDTH, 1.25 + 0.2 * len(names)), layout="constrained")
    panel = figure.subplots()
    for place, name in enumerate(names):
        _row(panel, standing, name, place, looks[name])
    panel.set_ylim(len(names) - 0.4, -0.6)
    _limits(panel, standing)
    _references(panel, standing)
    panel.set_yticks(range(len(names)), [literal(f"{_rank(standing, name)}  {shortened(name, 30)}") for name in names])
    panel.tick_params(axis="y", length=0)
    panel.grid(False, axis="y")
    panel.spines["left"].set_visible(False)
    _values(panel, standing, names)
    panel.set_xlabel(SCORE_NAMES[standing.score])
    figure.suptitle(setting_name(standing.key.imputer, standing.key.evaluator) + f", {standing.images:,} images")
    figure.supxlabel(_note(standing, confidence), fontsize=NOTE, color=GRAY)
    return figure


def _row(panel: Axes, standing: Standing, name: str, place: int, look: Look) -> None:
    value, low, high = _score(standing, name)
    clear = not standing.unbeaten_controls(name)
    panel.plot([low, high], [place, place], color=look.color, linewidth=1.6, solid_capstyle="butt")
    panel.plot(
        [value], [place], look.marker, color=look.color, markersize=6.5, markeredgewidth=1.0,
        markerfacecolor=look.color if clear else "white", label=literal(name),
    )  # fmt: skip


def _score(standing: Standing, name: str) -> tuple[float, float, float]:
    value, low, high = (float(standing.rows[standing.score + end][name]) for end in ("", "_low", "_high"))
    return value, low, high


def _rank(standing: Standing, name: str) -> int:
    """Among the methods; equal scores share it."""
    ranks = standing.rows.loc[list(standing.methods), f"{standing.score}_rank"]
    return int(1 + (ranks < ranks[name]).sum())


def _limits(panel: Axes, standing: Standing) -> None:
    shown = [*(value for name in standing.methods for value in _score(standing, name))]
    shown += [_score(standing, name)[0] for name in standing.controls]
    ends = np.nanmin(shown), np.nanmax(shown)
    room = 0.05 * (ends[1] - ends[0]) or 0.05
    panel.set_xlim(float(ends[0] - room), float(ends[1] + room))


def _references(panel: Axes, standing: Standing) -> None:
    """Blind controls as dashed lines; their names above, moved apart where they are close."""
    names = list(standing.controls)
    at = [_score(standing, name)[0] for name in names]
    if not names:
        return
    left, right = panel.get_xlim()
    worse = (left, max(at)) if SCORES[standing.score].higher_is_better else (min(at), right)
    panel.axvspan(*worse, color="#000000", alpha=0.05, linewidth=0, zorder=0)
    panel.set_xlim(left, right)
    width = (max(len(name) for name in names) * 0.058 + 0.1) / (0.6 * WIDTH) * (right - left)
    above = panel.get_xaxis_transform()
    for name, value, place in zip(names, at, spread(at, width, left, right), strict=True):
        panel.axvline(value, color=GRAY, linewidth=0.8, linestyle=(0, (4, 2)), zorder=1)
        leader = {"arrowstyle": "-", "color": GRAY, "linewidth": 0.6, "shrinkA": 0, "shrinkB": 0}
        panel.annotate(
            literal(name), (value, 1), (place, 1.07), xycoords=above, textcoords=above, ha="center", va="bottom",
            fontsize=NOTE, color=GRAY, arrowprops=leader, annotation_clip=False,
        )  # fmt: skip


def _values(panel: Axes, standing: Standing, names: list[str]) -> None:
    """Scores and intervals as numbers, on the right."""
    right = panel.twinx()
    right.set_ylim(panel.get_ylim())
    right.set_yticks(range(len(names)), [_text(*_score(standing, name)) for name in names])
    right.tick_params(axis="y", length=0)
    right.grid(False)
    right.spines[:].set_visible(False)


def _text(value: float, low: float, high: float) -> str:
    interval = "" if np.isnan(low) else f"  [{_number(low)}, {_number(high)}]"
    return f"{_number(value)}{interval}"


def _number(value: float) -> str:
    """
    >>> _number(-0.001), _number(-0.25)
    ('0.00', '−0.25')
    """
    return f"{value:.2f}".replace("-0.00", "0.00").replace("-", "−")


def _note(standing: Standing, confidence: float) -> str:
    bars = f"Bars: {confidence:.0%} interval of each score.".replace("%", " %")
    if not standing.controls:
        return bars
    return (
        f"{bars} Dashed: blind controls, which do not use the model.\n"
        "Filled: clearly better than every blind control. Hollow: not clearly."
    )
