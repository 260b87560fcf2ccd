"""The working memory of the compiled multigrid kernels, and how they are compiled and cached.

Layout: a level of h × w cells is stored in a flat array with row stride w + 1 and zeros around it (the zero after a
row is also the zero before the next), so that one vectorized loop over a *run* of flat indices covers many rows. All
levels share the same arrays, one after the other, the pixels first. A cell stores its links to the right and to the row
below; the other four are stored by its neighbors. Compiled functions take the whole `Space`, and indices are unsigned:
numba then counts no references and does not handle negative indices. Loops have one output each so that LLVM vectorizes
them.
"""

from collections.abc import Callable
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

Flat = NDArray[np.float32]
Mask = NDArray[np.bool_]
Function = TypeVar("Function", bound=Callable[..., Any])

F4, F8, U8 = np.float32, np.float64, np.uint64
U1, U2 = U8(1), U8(2)
ZERO, QUARTER, HALF, ONE = F4(0), F4(0.25), F4(0.5), F4(1)
STEP = 16
"""Granularity of runs, in cells: one vector."""
_COARSEST = 3
"""Largest side of the coarsest level, which is solved by its inverse."""
HEIGHT, WIDTH, START, RUNS, COUNT = range(5)


class Links(NamedTuple):
    """A symmetric matrix with 9 entries per row; `absorbed`, the row sum, is the flow to kept pixels."""

    absorbed: Flat
    east: Flat
    south: Flat
    southeast: Flat
    southwest: Flat
    diagonal: Flat


class Space(NamedTuple):
    """The working memory of one thread."""

    table: NDArray[np.int64]
    """A row per level: height, width, start, first run, number of runs."""
    runs: NDArray[np.uint64]
    links: Links
    half: Links
    """A level with coarsened rows and fine columns."""
    inverse: Flat
    """Damping over the diagonal; 0 for cells without unknowns."""
    residual: Flat
    guess: Flat
    work: Flat
    pixels: Flat
    """Kept pixels minus their mean, and the current solution at the removed ones."""
    direction: Flat
    row: Flat
    dense: NDArray[np.float64]
    bottom: Flat
    """The inverse of the coarsest matrix; `dense` is where it is computed."""
    deepest: NDArray[np.int64]
    """One number: the last level that the current image needs."""
    steps: NDArray[np.float64]
    """The coefficients α (step length) and β (share of the last direction) of conjugate gradients."""


FASTER = {"nnan", "ninf", "nsz", "contract", "reassoc"}
"""Of numba's `fastmath` all but reciprocals in place of divisions: compiled loops have several variants, only some of
which would take them, and where an array lies in memory decides which variant runs."""


def compiled(function: Function, *, inline: str = "never", fastmath: Any = FASTER) -> Function:
    """Compile a part of `fill_planes`, which alone is called from Python and cached; inline what is called once."""
    njit: Any = numba.njit
    wrappers = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return cast(Function, njit(nogil=True, error_model="numpy", fastmath=fastmath, inline=inline, **wrappers)(function))


def cached(function: Function) -> Function:
    """Cache machine code on disk or, if numba has no writable cache directory, compile in each process.

    numba compiles a cached function anew only if its own file changed, not those of the functions that it calls.
    Therefore the name of the cached file contains a hash of all of them.
    """
    function.__qualname__ += f"_{_sources()}"
    options = partial(numba.njit, nogil=True, error_model="numpy", fastmath=FASTER)
    try:
        return cast(Function, options(cache=True)(function))
    except RuntimeError:  # "cannot cache function: no locator available"
        return cast(Function, options()(function))


def _sources() -> str:
    """A hash of the files that contain compiled functions."""
    texts = [path.read_bytes() for path in sorted(Path(__file__).parent.glob("multigrid_*.py"))]
    return sha256(b"".join(texts)).hexdigest()[:12]


def sizes(height: int, width: int) -> list[tuple[int, int]]:
    """Heights and widths of the levels, the pixels first; an even side gets one node beyond its end."""
    levels = [(height, width)]
    while len(levels) == 1 or max(levels[-1]) > _COARSEST:
        levels.append((levels[-1][0] // 2 + 1, levels[-1][1] // 2 + 1))
    return levels


def make_space(height: int, width: int, limit: int) -> Space:
    levels = sizes(height, width)
    lengths = [(h + 3) * (w + 1) + STEP for h, w in levels]
    starts = np.cumsum([0, *lengths])
    total, half = int(starts[-1]), (height // 2 + 4) * (width + 4)
    runs = np.cumsum([0] + [length // STEP + 1 for length in lengths])
    nodes = levels[-1][0] * levels[-1][1]

    def flat(size: int) -> Flat:
        return np.zeros(size, F4)

    return Space(
        table=np.array([(h, w, starts[i], runs[i], 0) for i, (h, w) in enumerate(levels)], np.int64),
        runs=np.zeros((runs[-1], 2), U8),
        links=Links(*(flat(total) for _ in Links._fields)),
        half=Links(*(flat(half) for _ in Links._fields)),
        inverse=flat(total),
        residual=flat(total),
        guess=flat(total),
        work=flat(total),
        pixels=flat(lengths[0]),
        direction=flat(lengths[0]),
        row=flat(max(width + 4, nodes)),
        dense=np.zeros((nodes, nodes)),
        bottom=flat(nodes * nodes),
        deepest=np.zeros(1, np.int64),
        steps=np.zeros((2, limit)),
    )


@compiled
def shape(space: Space, depth: int) -> tuple[int, int, int]:
    """Height, width and start of a level."""
    return space.table[depth, HEIGHT], space.table[depth, WIDTH], space.table[depth, START]


@compiled
def span(space: Space, depth: int) -> tuple[Any, Any, Any]:
    """Stride, first and last flat index of a level."""
    height, width, start = shape(space, depth)
    return U8(width + 1), U8(start + width + 2), U8(start + (height + 1) * (width + 1))


@compiled
def runs_of(space: Space, depth: int) -> tuple[int, int]:
    return space.table[depth, RUNS], space.table[depth, RUNS] + space.table[depth, COUNT]


@compiled
def around(x: Any, k: Any, stride: Any, ratio: Any) -> Any:
    """Σ weight·neighbor of pixel k: 1 for direct neighbors, `ratio` for diagonal ones."""
    direct = (x[k - stride] + x[k + stride]) + (x[k - U1] + x[k + U1])
    return direct + ratio * ((x[k - stride - U1] + x[k - stride + U1]) + (x[k + stride - U1] + x[k + stride + U1]))
