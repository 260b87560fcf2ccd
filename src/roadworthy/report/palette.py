"""One look per method, the same in every figure and on the page."""

from collections.abc import Sequence
from dataclasses import dataclass

# Okabe-Ito, which the colour-blind tell apart; its yellow, hardly visible on white, gave way to a violet.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7A5195", "#000000")
_DASHES: tuple[tuple[float, ...], ...] = ((), (5, 2), (1, 1.5), (6, 1.5, 1, 1.5))
_GREYS = ("#999999", "#6B6B6B")
_GREY_DASHES: tuple[tuple[float, ...], ...] = ((4, 2), (1, 2), (6, 2, 1, 2), (1, 4), (9, 3))


@dataclass(frozen=True)
class Look:
    colour: str
    """#RRGGBB"""
    dash: tuple[float, ...]
    """lengths on and off; () is solid"""


def colours(methods: Sequence[str], controls: Sequence[str]) -> dict[str, Look]:
    """A look per name: colours for methods, dashed beyond eight; greys for controls.

    >>> looks = colours(["IG", "GB", "random"], ["random"])
    >>> looks["GB"], looks["random"]
    (Look(colour='#D55E00', dash=()), Look(colour='#999999', dash=(4, 2)))
    """
    asked = [name for name in dict.fromkeys(methods) if name not in controls]
    rest = [name for name in dict.fromkeys(methods) if name in controls]
    return {
        **{name: _look(_COLOURS, _DASHES, *divmod(i, len(_COLOURS))[::-1]) for i, name in enumerate(asked)},
        **{name: _look(_GREYS, _GREY_DASHES, *divmod(i, len(_GREY_DASHES))) for i, name in enumerate(rest)},
    }


def _look(inks: Sequence[str], dashes: Sequence[tuple[float, ...]], ink: int, dash: int) -> Look:
    return Look(inks[ink % len(inks)], dashes[dash % len(dashes)])
