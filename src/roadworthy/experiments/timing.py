"""How long work takes, from few timings of a little of it."""

import math
import time
from collections.abc import Callable
from typing import NamedTuple

clock = time.perf_counter

ENOUGH = 0.5
"""Seconds of timing after which nothing is timed again."""

OnEpoch = Callable[[object], object]


class Line(NamedTuple):
    """Seconds that are paid once, and those for each unit of work."""

    once: float
    each: float

    @classmethod
    def through(cls, small: tuple[int, float], large: tuple[int, float]) -> "Line":
        """Two timings, as (units, seconds); where noise hides the slope, nothing counts as paid once."""
        (few, short), (many, long) = small, large
        if long <= short or many == few:
            return cls(0.0, long / many)
        each = (long - short) / (many - few)
        return cls(max(0.0, short - each * few), each)

    def at(self, units: float) -> float:
        return self.once + self.each * units


def seconds(action: Callable[[], object]) -> float:
    """The best of a few, as other programs only make it longer; what takes long is done once."""
    best, spent = math.inf, 0.0
    for _ in range(3):
        started = clock()
        action()
        took = clock() - started
        best, spent = min(best, took), spent + took
        if spent > ENOUGH:
            break
    return best


def seconds_per_image(train: Callable[[OnEpoch], None], images: int) -> float:
    """Of a training on so many images, which calls back after each epoch: what one costs in an epoch.

    Taken from the second epoch: the first also pays for building and importing, which a real training hardly feels.
    """
    ends: list[float] = []
    train(lambda record: ends.append(clock()))
    return (ends[1] - ends[0]) / images
