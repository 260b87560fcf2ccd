"""Axes: round numbers, and labels that do not overlap."""

import math
from collections.abc import Sequence
from typing import NamedTuple

CHARACTER = 6.6
"""width of a letter in a chart, roughly; pixels"""


class Tick(NamedTuple):
    at: float
    text: str


class Axis(NamedTuple):
    """A linear axis from `start` to `end`, drawn from `near` to `far`."""

    start: float
    end: float
    near: float
    far: float

    def at(self, value: float) -> float:
        return round(self.near + (value - self.start) / (self.end - self.start) * (self.far - self.near), 1)

    def ticks(self, text: str = "{:g}", most: int = 6) -> list[Tick]:
        values = round_values(self.start, self.end, most)
        return [Tick(self.at(value), text.format(value).replace("-", "−")) for value in values]


def round_values(start: float, end: float, most: int = 6) -> list[float]:
    """At most so many round numbers between the two.

    >>> round_values(-0.03, 0.42), round_values(0, 0.9)
    ([0.0, 0.1, 0.2, 0.3, 0.4], [0.0, 0.2, 0.4, 0.6, 0.8])
    """
    width = (end - start) or 1.0
    power = 10.0 ** math.floor(math.log10(width / most))
    step = next(power * factor for factor in (1, 2, 5, 10, 20) if width / (power * factor) <= most)
    first, last = math.ceil(round(start / step, 9)), math.floor(round(end / step, 9))
    return [round(k * step, 12) + 0.0 for k in range(first, last + 1)]


def levels(places: Sequence[float], texts: Sequence[str]) -> list[int]:
    """For labels centered at these places: the first level on which each overlaps none before it.

    >>> levels([10, 20, 200], ["random", "edges", "center"])
    [0, 1, 0]
    """
    ends: dict[int, list[tuple[float, float]]] = {}
    chosen = []
    for place, text in zip(places, texts, strict=True):
        half = (len(text) + 1) * CHARACTER / 2
        level = next(
            k for k in range(len(places)) if all(place + half <= a or place - half >= b for a, b in ends.get(k, []))
        )
        ends.setdefault(level, []).append((place - half, place + half))
        chosen.append(level)
    return chosen
