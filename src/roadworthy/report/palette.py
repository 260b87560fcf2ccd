"""One color and line style per method, the same in every chart, table and figure; safe for color-blind readers."""

from collections.abc import Iterable
from typing import NamedTuple

_COLORS = (
    ("#0072B2", "#2E94DB"),
    ("#D55E00", "#E8702A"),
    ("#009E73", "#1FB58A"),
    ("#CC79A7", "#DE94BE"),
    ("#E69F00", "#F0AE28"),
    ("#56B4E9", "#86CDF4"),
    ("#000000", "#FFFFFF"),
    ("#882255", "#F0E442"),
)
"""Okabe-Ito on white and, slightly lighter, on dark. Its yellow is illegible on white and replaced by wine there."""
_DASHES: tuple[tuple[int, ...], ...] = ((), (7, 3), (2, 2), (8, 2, 2, 2), (12, 3), (4, 2, 1, 2))
"""of methods: the next pattern is used once all colors are"""
_GRAYS = (("#8A8A8A", "#9A9A9A"), ("#5C5C5C", "#C8C8C8"))
_CONTROL_DASHES = ((5, 3), (1, 2), (8, 2, 2, 2), (1, 4), (10, 3))


class Look(NamedTuple):
    color: str
    """`#rrggbb` on white"""
    dark: str
    """on a dark page"""
    dash: tuple[int, ...]
    """lengths of dashes and gaps, () for a solid line"""


def colors(methods: Iterable[str], controls: Iterable[str] = ()) -> dict[str, Look]:
    """Look by name, independent of the order of the names; controls are gray and dashed.

    >>> colors(["IG", "GB", "random"], ["random"])["IG"]
    Look(color='#D55E00', dark='#E8702A', dash=())
    """
    gray = sorted(set(controls))
    colored = sorted(set(methods) - set(gray))
    return {
        **{name: Look(*_COLORS[k % 8], _DASHES[k // 8 % len(_DASHES)]) for k, name in enumerate(colored)},
        **{name: Look(*_GRAYS[k // 5 % 2], _CONTROL_DASHES[k % 5]) for k, name in enumerate(gray)},
    }
