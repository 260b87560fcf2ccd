"""A picture of imputers side by side."""

import io
from collections.abc import Sequence
from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure


def strip_png(pixels: Any, names: Sequence[str], columns: int) -> bytes:
    """`pixels` `(h, w, c)`: a row of images per name."""
    height = pixels.shape[0] / len(names)
    with rc_context({"font.size": 8}):
        figure = Figure(figsize=(1.2 + 0.7 * columns, 0.7 * len(names)), layout="constrained")
        panel = figure.subplots()
        panel.imshow(pixels.squeeze(), cmap="gray", vmin=0, vmax=1, interpolation="nearest")
        panel.set_yticks([(row + 0.5) * height - 0.5 for row in range(len(names))], names)
        panel.set_xticks([])
        panel.tick_params(length=0)
        panel.spines[:].set_visible(False)
        content = io.BytesIO()
        figure.savefig(content, format="png", dpi=150)
    return content.getvalue()
