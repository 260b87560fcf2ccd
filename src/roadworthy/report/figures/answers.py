"""One image from the original to the model's answer: what each method marks, the image without it, and imputed."""

from textwrap import wrap

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from roadworthy.report.examples import Answer, AnsweredImage, Gallery
from roadworthy.report.figures.pictures import show
from roadworthy.report.figures.style import GRAY, NOTE, PAGE, literal, styled
from roadworthy.report.html.examples import steps
from roadworthy.report.labels import shortened

RIGHT, WRONG = "#00734D", "#B3261E"
"""of the model's answers"""


@styled
def answered(gallery: Gallery, example: AnsweredImage) -> Figure:
    """A row per method of the gallery, the best first; below a picture, what the model answers to it."""
    rows = {method: steps(example, method) for method in gallery.roles}
    columns = max(len(row) for row in rows.values())
    height, width = example.image.shape[-2:]
    cell = (PAGE - 1.1) / (1 + columns)
    figure = Figure(figsize=(PAGE, len(rows) * (cell * height / width + 0.42) + 0.75), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.03, h_pad=0.03, wspace=0.06, hspace=0.02)  # type: ignore[union-attr, call-arg]
    panels = figure.subplots(len(rows), 1 + columns, squeeze=False)
    for panel in panels.flat:
        panel.set_axis_off()
    _picture(panels[0, 0], example.image, "original", example.answer)
    for number, (line, (method, row)) in enumerate(zip(panels, rows.items(), strict=True)):
        for panel, step in zip(line[1:], row, strict=False):
            _picture(panel, step.picture.pixels, "" if number else step.caption, step.answer)
            arrow = "→" if step.caption in ("removed", "imputed") else ""
            panel.annotate(arrow, (0, 0.5), (-4, 0), xycoords="axes fraction", textcoords="offset points", ha="right",
                           va="center", fontsize=9, color=GRAY)  # fmt: skip
        line[1].set_ylabel(literal(f"{shortened(method, 16)}\n{gallery.roles[method]}"), rotation=0, ha="right",
                           va="center", labelpad=6)  # fmt: skip
    figure.suptitle(literal(f"{example.title}, imputed with {example.imputer}"))
    figure.supxlabel(literal("\n".join(wrap(_caption(gallery, example), 125))), fontsize=NOTE, color=GRAY)
    return figure


def _picture(panel: Axes, pixels: object, title: str, answer: Answer | None) -> None:
    panel.set_axis_on()
    show(panel, pixels)  # type: ignore[arg-type]
    panel.set_title("\n".join(wrap(title, 18)), fontsize=7)
    if answer is not None:
        panel.set_xlabel(literal(_answer(answer)), color=RIGHT if answer.correct else WRONG, fontsize=7)


def _answer(answer: Answer) -> str:
    """The predicted class, and the probability of the class that was explained, which need not be the same."""
    mark = "✓" if answer.correct else "✗"
    share = f"{100 * answer.probability:.0f} %"
    same = answer.name == answer.target
    name = shortened(answer.name, 14)
    return f"{mark} {name} {share}" if same else f"{mark} {name}\n{shortened(answer.target, 12)} {share}"


def _caption(gallery: Gallery, example: AnsweredImage) -> str:
    why = gallery.why_lead if example is gallery.lead else gallery.why
    return f"Below: the model's answer and the probability of the explained class. {why}"
