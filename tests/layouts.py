"""Is a figure readable? Texts that overlap, leave the figure or are crossed by a line."""

import warnings
from itertools import combinations
from unittest.mock import patch

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.legend import Legend
from matplotlib.text import Text
from matplotlib.transforms import Bbox


def problems(figure):
    """One line per problem; none for a figure that can be read. Layout warnings are errors."""
    texts, renderer = drawn_texts(figure)
    boxes = [(text.get_text(), _shrunk(Text.get_window_extent(text, renderer))) for text in texts]
    whole = Bbox([[-1, -1], [figure.bbox.width + 1, figure.bbox.height + 1]])
    found = [f"{name!r} leaves the figure" for name, box in boxes if not _inside(box, whole)]
    found += [f"{a!r} and {b!r} overlap" for (a, one), (b, other) in combinations(boxes, 2) if one.overlaps(other)]
    for axes in figure.axes:
        for line in axes.lines:
            path = line.get_transform().transform_path(line.get_path())
            if len(path.vertices) > 1 and line.get_linestyle() != "None":
                visible = axes.bbox if line.get_clip_on() else figure.bbox
                parts = [(name, Bbox.intersection(box, visible)) for name, box in boxes]
                found += [
                    f"a line crosses {name!r}"
                    for name, part in parts
                    if part is not None and part.width > 1 and path.intersects_bbox(part, filled=False)
                ]
    legends = [_shrunk(legend.get_window_extent(renderer)) for legend in figure.findobj(Legend)]
    found += ["a legend covers a panel" for box in legends for axes in figure.axes if box.overlaps(axes.bbox)]
    return found


def drawn_texts(figure):
    """The texts that are drawn, without ticks beyond the axis, and the renderer."""
    drawn, draw = [], Text.draw

    def record(text, renderer):
        if text.get_visible() and text.get_text().strip():
            drawn.append(text)
        draw(text, renderer)

    canvas = FigureCanvasAgg(figure)
    with warnings.catch_warnings(), patch.object(Text, "draw", record):
        warnings.simplefilter("error")
        canvas.draw()
    return list(dict.fromkeys(drawn)), canvas.get_renderer()


def _shrunk(box):
    """By a pixel on each side: boxes that only touch do not overlap."""
    return Bbox([[box.x0 + 1, box.y0 + 1], [max(box.x0 + 2, box.x1 - 1), max(box.y0 + 2, box.y1 - 1)]])


def _inside(box, whole):
    return whole.x0 <= box.x0 and box.x1 <= whole.x1 and whole.y0 <= box.y0 and box.y1 <= whole.y1
