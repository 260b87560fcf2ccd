"""Copies of exact maps whose quality is known to be worse."""

from roadworthy.attributions.controls import blurred
from roadworthy.core.random import Key
from roadworthy.core.types import Ids, Maps

NOISE = {"noisy": 1.0, "very noisy": 4.0}
"""standard deviation of the noise, in standard deviations of the exact map"""


def copies(exact: Maps, ids: Ids, key: Key) -> dict[str, Maps]:
    """By name: the exact maps, noisy ones, a constant, and the exact maps inverted."""
    spread = exact.std(dim=(1, 2), keepdim=True)
    noise = {
        name: exact + level * spread * key.fold(name).normal(ids, tuple(exact.shape[1:]))
        for name, level in NOISE.items()
    }
    return {"exact": exact, **noise, "blurred": blurred(exact, 2.0), "constant": exact * 0, "inverted": -exact}
