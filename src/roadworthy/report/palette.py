"""The look of a method: color and marker follow from its name, so they are the same in every report, chart and figure.

All colors have a contrast of at least 3 : 1; the paper's methods stay distinct for color-blind readers.
"""

from collections.abc import Iterable
from typing import NamedTuple
from zlib import crc32

_COLORS = (
    ("#0072B2", "#2E94DB"),  # blue
    ("#D55E00", "#E8702A"),  # vermilion
    ("#0AA77D", "#1FB58A"),  # green
    ("#772753", "#F0E442"),  # wine, yellow on dark
    ("#E01A4A", "#DE94BE"),  # crimson, pink on dark
    ("#000000", "#FFFFFF"),
    ("#483E03", "#F0AE28"),  # dark olive, orange on dark
    ("#1F9EAF", "#86CDF4"),  # cyan
    ("#5B4FCF", "#A79BFF"),  # indigo
    ("#6B7A00", "#B5C334"),  # olive
    ("#8A5A3B", "#D09A72"),  # brown
    ("#B4498A", "#FF8A80"),  # magenta, salmon on dark
)
"""on white and on dark: the first eight are distinct in normal, protanopic and deuteranopic sight"""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
"""matplotlib's codes"""
PAPER_NAMES = ("IG-SG", "IG", "IG-SQ", "IG-Var", "GB-SG", "GB", "GB-SQ", "GB-Var")
"""the paper's methods have the first eight colors and all markers, one each"""
_DASHES: tuple[tuple[int, ...], ...] = ((), (7, 3), (2, 2), (8, 2, 2, 2), (12, 3), (4, 2, 1, 2))
"""of methods: the next pattern where a color is taken"""
_GRAYS = (("#808080", "#9A9A9A"), ("#5C5C5C", "#C8C8C8"))
_CONTROL_DASHES = ((5, 3), (1, 2), (8, 2, 2, 2), (1, 4), (10, 3))
CONTROL_MARKER = "|"


class Look(NamedTuple):
    color: str
    """`#rrggbb` on white"""
    dark: str
    """on a dark page"""
    dash: tuple[int, ...]
    """lengths of dashes and gaps, () for a solid line"""
    marker: str = "o"
    """one of `MARKERS`; `|` for controls"""


def colors(methods: Iterable[str], controls: Iterable[str] = ()) -> dict[str, Look]:
    """Look by name, whatever the order of the names; controls are gray and dashed.

    Methods whose names happen to give the same color have different line styles.

    >>> colors(["IG", "GB", "random"], ["random"])["IG"]
    Look(color='#D55E00', dark='#E8702A', dash=(), marker='s')
    """
    gray = sorted(set(controls))
    colored = sorted(set(methods) - set(gray), key=lambda name: (name not in PAPER_NAMES, name))
    used: dict[int, int] = {}
    looks = {}
    for name in colored:
        color, marker = _of_name(name)
        shared = used[color] = used.get(color, -1) + 1
        looks[name] = Look(*_COLORS[color], _DASHES[shared % len(_DASHES)], MARKERS[marker])
    return {
        **looks,
        **{name: Look(*_GRAYS[k // 5 % 2], _CONTROL_DASHES[k % 5], CONTROL_MARKER) for k, name in enumerate(gray)},
    }


def _of_name(name: str) -> tuple[int, int]:
    """Places in `_COLORS` and `MARKERS`."""
    if name in PAPER_NAMES:
        return PAPER_NAMES.index(name), PAPER_NAMES.index(name)
    number = crc32(name.encode())
    return number % len(_COLORS), number // len(_COLORS) % len(MARKERS)
