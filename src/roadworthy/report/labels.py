"""Labels in charts: short enough, and moved apart just enough that none covers another."""

from collections.abc import Sequence

import numpy as np


def shortened(name: str, most: int = 20) -> str:
    """At most so many characters: begin and end of a longer name, since names often differ at the end.

    >>> shortened("IG"), shortened("integrated gradients, 50 steps", 16)
    ('IG', 'integrat…0 steps')
    """
    half = most // 2
    return name if len(name) <= most else f"{name[:half]}…{name[len(name) - (most - half - 1) :]}"


def spread(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Places within [low, high], at least `gap` apart, in the order of `wanted` and as near to them as possible.

    Least squares under these constraints (isotonic regression). Where they do not all fit, the gap is smaller.

    >>> spread([0.5, 0.5, 0.9], 0.1, 0, 1)
    [0.45, 0.55, 0.9]
    >>> spread([0.0, 0.0, 0.0], 0.1, 0, 1)
    [0.0, 0.1, 0.2]
    """
    if not wanted:
        return []
    order = np.argsort(wanted, kind="stable")
    gap = min(gap, (high - low) / max(1, len(wanted) - 1))
    steps = gap * np.arange(len(wanted))
    groups: list[list[float]] = []
    for value in (np.asarray(wanted, dtype=float)[order] - steps).tolist():
        groups.append([value])
        while len(groups) > 1 and np.mean(groups[-2]) > np.mean(groups[-1]):
            groups[-2:] = [groups[-2] + groups[-1]]
    level = np.concatenate([[np.mean(group)] * len(group) for group in groups])
    places = np.empty(len(wanted))
    places[order] = np.clip(level, low, high - steps[-1]) + steps
    return [round(float(place), 9) for place in places]
