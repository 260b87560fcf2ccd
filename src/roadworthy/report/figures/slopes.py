"""The slope chart: what an imputer changes. Ranks by MoRF on the left, by LeRF on the right."""

from collections.abc import Collection, Mapping, Sequence
from textwrap import wrap
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from roadworthy.report.figures.style import GRAY, NOTE, PAGE, literal, setting_name, styled
from roadworthy.report.labels import shortened
from roadworthy.report.palette import Look
from roadworthy.report.ranks import PAIRINGS, RankPanel, RankRow

COLUMNS = 2


@styled
def slopes(
    panels: Sequence[RankPanel], looks: Mapping[str, Look], emphasized: Collection[str] = (), headline: str = ""
) -> Figure:
    """One panel per evaluator and imputer. Without controls; emphasized methods have thick lines and bold names."""
    columns = min(COLUMNS, len(panels))
    lines = -(-len(panels) // columns)
    most = max(len(panel.rows) for panel in panels)
    height = lines * (1.22 + 0.21 * most) + (0.25 if headline else 0)
    figure = Figure(figsize=(PAGE if columns > 1 else PAGE / 2, height), layout="constrained")
    axes = figure.subplots(lines, columns, squeeze=False)
    figure.get_layout_engine().set(wspace=0.12, h_pad=0.08)  # type: ignore[union-attr, call-arg]
    for axis in axes.flat[len(panels) :]:
        axis.set_axis_off()
    for axis, panel in zip(axes.flat, panels, strict=False):
        _panel(axis, panel, looks, emphasized, most)
    if headline:
        figure.suptitle(literal("\n".join(wrap(headline, 88))), fontsize=8.5, fontweight="bold")
    return figure


def _panel(axis: Axes, panel: RankPanel, looks: Mapping[str, Look], emphasized: Collection[str], most: int) -> None:
    # Thick lines last, above the others.
    for row in sorted(panel.rows, key=lambda row: row.method in emphasized):
        _line(axis, row, looks[row.method], row.method in emphasized)
    axis.set_ylim(most + 0.5, 0.5)
    axis.set_xlim(-0.04, 1.04)
    axis.set_xticks([0, 1], ["rank by MoRF area", "rank by LeRF area"])
    axis.set_yticks([])
    axis.tick_params(length=0, pad=5)
    axis.grid(False)
    axis.spines[:].set_visible(False)
    _titles(axis, panel)


def _line(axis: Axes, row: RankRow, look: Look, strong: bool) -> None:
    ends, width = [row.morf_place, row.lerf_place], 3.0 if strong else 1.2
    axis.plot(
        [0, 1], ends, color=look.color, marker=look.marker, linewidth=width, markersize=6 if strong else 4.5,
        alpha=1 if strong else 0.75, clip_on=False, label=literal(row.method),
    )  # fmt: skip
    weight = "bold" if strong else "normal"
    style: dict[str, Any] = {"va": "center", "fontsize": 7.5, "fontweight": weight, "annotation_clip": False}
    name = shortened(row.method, 14)
    for x, place, offset, side, text in (
        (0, row.morf_place, -7, "right", f"{name}  {row.morf}"),
        (1, row.lerf_place, 7, "left", f"{row.lerf}  {name}"),
    ):
        axis.annotate(literal(text), (x, place), (offset, 0), textcoords="offset points", ha=side, **style)


def _titles(axis: Axes, panel: RankPanel) -> None:
    found = [f"Spearman {agreement} {PAIRINGS[name]}" for name, agreement in panel.agreement.items()]
    title = "\n".join(filter(None, [setting_name(panel.imputer, panel.evaluator), panel.words]))
    axis.set_title(title, fontsize=8, pad=6 + 9.5 * len(found))
    axis.annotate("\n".join(found), (0.5, 1), (0, 5), xycoords="axes fraction", textcoords="offset points", ha="center",
                  va="bottom", fontsize=NOTE, color=GRAY, linespacing=1.3)  # fmt: skip
