"""One look per method, the same in every chart, table and figure; the color-blind tell them apart."""

from collections.abc import Iterable
from typing import NamedTuple

_COLOURS = (
    ("#0072B2", "#2E94DB"),
    ("#D55E00", "#E8702A"),
    ("#009E73", "#1FB58A"),
    ("#CC79A7", "#DE94BE"),
    ("#E69F00", "#F0AE28"),
    ("#56B4E9", "#86CDF4"),
    ("#000000", "#FFFFFF"),
    ("#882255", "#F0E442"),
)
"""Okabe-Ito on white and, a little lighter, on dark. Its yellow cannot be seen on white: wine stands in there."""
_DASHES: tuple[tuple[int, ...], ...] = ((), (7, 3), (2, 2), (8, 2, 2, 2), (12, 3), (4, 2, 1, 2))
"""of methods: the next pattern takes over when the colors are used up"""
_GREYS = (("#8A8A8A", "#9A9A9A"), ("#5C5C5C", "#C8C8C8"))
_CONTROL_DASHES = ((5, 3), (1, 2), (8, 2, 2, 2), (1, 4), (10, 3))


class Look(NamedTuple):
    color: str
    """`#rrggbb` on white"""
    dark: str
    """on a dark page"""
    dash: tuple[int, ...]
    """lengths of dashes and gaps, () for a solid line"""


def colors(methods: Iterable[str], controls: Iterable[str] = ()) -> dict[str, Look]:
    """Name to look, whatever the order in which the names come: controls are gray and never solid.

    >>> colors(["IG", "GB", "random"], ["random"])["IG"]
    Look(color='#D55E00', dark='#E8702A', dash=())
    """
    known = set(controls)
    asked = sorted(set(methods) - known)
    return {
        **{name: Look(*_COLOURS[k % 8], _DASHES[k // 8 % len(_DASHES)]) for k, name in enumerate(asked)},
        **{name: Look(*_GREYS[k // 5 % 2], _CONTROL_DASHES[k % 5]) for k, name in enumerate(sorted(known))},
    }
