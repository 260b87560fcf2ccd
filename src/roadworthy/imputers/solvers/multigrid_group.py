"""The working memory for small images: several planes side by side, a *group*, see `multigrid_lanes.py`.

Layout: a level of h × w cells has row stride w + 2 and zeros around it. All levels share the same arrays, one after
the other, the pixels first. A cell stores its links to the right and to the row below; the other four are stored by its
neighbors. Where nothing is unknown, all links are 0: loops run through borders and kept cells without looking.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from roadworthy.imputers.solvers.multigrid_lanes import LANES, splat, store, turn
from roadworthy.imputers.solvers.multigrid_memory import F4, ZERO, Flat, Links, compiled, sizes

HEIGHT, WIDTH, START, HALF = range(4)
PRODUCT, LARGEST, KEEP, LENGTH, MEAN = range(5)
_ALIGNMENT = 64
"""Bytes of a cache line."""


class Group(NamedTuple):
    """The working memory of one thread."""

    table: NDArray[np.int64]
    """A row per level: height, width, start in the arrays, start in `half`."""
    links: Links
    half: Links
    """Each level but the first with coarsened rows and fine columns."""
    inverse: Flat
    """Damping over the diagonal; 0 for cells without unknowns."""
    residual: Flat
    guess: Flat
    work: Flat
    mask: Flat
    """1 at removed pixels, else 0"""
    pixels: Flat
    """Kept pixels minus their mean, and the current solution at the removed ones."""
    direction: Flat
    total: Flat
    """One number per pixel: the sum of its weights."""
    rest: Flat
    """One number per pixel: damping over that sum."""
    dense: NDArray[np.float64]
    bottom: Flat
    """The inverse of the coarsest matrix; `dense` is where it is computed."""
    steps: NDArray[np.float64]
    """Of each lane: the coefficients α (step length) and β (share of the last direction) of conjugate gradients."""
    numbers: Flat
    """Five numbers of each lane, on their way from or to vectors: `PRODUCT`, `LARGEST`, `KEEP`, `LENGTH`, `MEAN`."""
    plane: NDArray[np.int64]
    """The plane in each lane (image · channels + channel); in unused lanes that of another."""
    unknown: NDArray[np.int64]
    """Of each lane: the number of removed pixels, 0 if it is unused."""
    planes: Flat
    """The planes one after the other, on their way from or to lanes."""
    mean: NDArray[np.float64]
    """Of each lane: the mean of the kept pixels."""
    unit: NDArray[np.float64]
    """Of each lane: the largest kept pixel in magnitude, at least 1."""
    product: NDArray[np.float64]
    """Of each lane: residual·work of the last iteration."""
    active: NDArray[np.bool_]
    solved: NDArray[np.bool_]
    """Whether a lane is still being solved, and whether it was just solved."""


def make_group(height: int, width: int, limit: int) -> Group:
    levels = sizes(height, width)
    lengths = [(h + 4) * (w + 2) + LANES for h, w in levels]
    halves = [0, *((h + 4) * (w + 2) for (h, _), (_, w) in zip(levels[1:], levels[:-1], strict=True))]
    starts, half_starts = np.cumsum([0, *lengths]), np.cumsum([0, *halves])
    nodes = levels[-1][0] * levels[-1][1]

    def lanes(cells: int) -> Flat:
        return _aligned(LANES * cells)

    return Group(
        table=np.array([(h, w, starts[i], half_starts[i]) for i, (h, w) in enumerate(levels)], np.int64),
        links=Links(*(lanes(starts[-1]) for _ in Links._fields)),
        half=Links(*(lanes(half_starts[-1]) for _ in Links._fields)),
        inverse=lanes(starts[-1]),
        residual=lanes(starts[-1]),
        guess=lanes(starts[-1]),
        work=lanes(starts[-1]),
        mask=lanes(lengths[0]),
        pixels=lanes(lengths[0]),
        direction=lanes(lengths[0]),
        total=np.zeros(lengths[0], F4),
        rest=np.zeros(lengths[0], F4),
        dense=np.zeros(LANES * nodes * nodes),
        bottom=lanes(nodes * nodes),
        steps=np.zeros((LANES, 2, limit)),
        numbers=lanes(5),
        plane=np.zeros(LANES, np.int64),
        unknown=np.zeros(LANES, np.int64),
        planes=lanes(height * width + LANES),
        mean=np.zeros(LANES),
        unit=np.zeros(LANES),
        product=np.zeros(LANES),
        active=np.zeros(LANES, np.bool_),
        solved=np.zeros(LANES, np.bool_),
    )


def _aligned(size: int) -> Flat:
    whole = np.zeros(size + _ALIGNMENT // 4, F4)
    skipped = -whole.ctypes.data % _ALIGNMENT // 4
    return whole[skipped : skipped + size]


@compiled
def level(table: NDArray[np.int64], depth: int) -> tuple[int, int, int]:
    """Height, row stride, and the first cell of a level."""
    stride = table[depth, WIDTH] + 2
    return table[depth, HEIGHT], stride, table[depth, START] + stride + 1


@compiled
def spread(group: Group, lanes: Flat) -> None:
    """From `planes` to lanes. What is copied in vain goes to borders, or is replaced by the next row."""
    height, stride, first = level(group.table, 0)
    planes, width = group.planes, group.table[0, WIDTH]
    for i in range(height):
        for j in range(0, width, LANES):
            turn(planes, i * width + j, len(planes) // LANES, lanes, LANES * (first + i * stride + j), LANES)
    for i in range(height):
        for border in range(2):
            store(lanes, first + i * stride + width + border, splat(ZERO))
    for k in range(first + height * stride, first + height * stride + LANES):
        store(lanes, k, splat(ZERO))


@compiled
def collect(group: Group, lanes: Flat) -> None:
    """From lanes to `planes`."""
    height, stride, first = level(group.table, 0)
    planes, width = group.planes, group.table[0, WIDTH]
    for i in range(height):
        for j in range(0, width, LANES):
            turn(lanes, LANES * (first + i * stride + j), LANES, planes, i * width + j, len(planes) // LANES)


@compiled
def cells(table: NDArray[np.int64], depth: int) -> tuple[int, int, int]:
    """Row stride, first cell of a level and the one after its last, borders between rows included."""
    height, stride, first = level(table, depth)
    return stride, first, first + height * stride
