"""The kernels of `multigrid.py`, compiled by numba: matrices PᵀAP, one V-cycle, conjugate gradients.

Layout: a level of h × w cells is stored in a flat array with row stride w + 1 and zeros around it (the zero after a
row is also the zero before the next), so that one vectorized loop over a *run* of flat indices covers many rows. All
levels share the same arrays, one after the other, the pixels first. A cell stores its links to the right and to the row
below; the other four are stored by its neighbors. Compiled functions take the whole `Space`, and indices are unsigned:
numba then counts no references and does not handle negative indices. Loops have one output each so that LLVM vectorizes
them.

This is one long file because numba invalidates a cached function only when its own file changes, not those it calls.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

Flat = NDArray[np.float32]
Exact = NDArray[np.float64]
Mask = NDArray[np.bool_]
Function = TypeVar("Function", bound=Callable[..., Any])

_F4, _F8, _U8 = np.float32, np.float64, np.uint64
_U1, _U2 = _U8(1), _U8(2)
_ZERO, _QUARTER, _HALF, _ONE = _F4(0), _F4(0.25), _F4(0.5), _F4(1)
DAMPING = 0.9
"""Of Jacobi smoothing. Below 1, because plain Jacobi does not damp a checkerboard if diagonal weights are 0."""
_DAMPING = _F4(DAMPING)
SINGULAR = 1e-5
"""Relative shift of the diagonal of the coarsest matrix, which may be singular."""
SAFETY, FLOOR = 4.0, 0.15
"""Of the error estimate, see `_converge`. Over 1,300 masks of ten kinds the largest error was half the tolerance."""
NOT_FINITE, NOTHING_KEPT = -1.0, -2.0
"""Codes that take the place of an error estimate."""
_COARSEST = 3
"""Largest side of the coarsest level, which is solved by its inverse."""
_STEP = 16
"""Granularity of runs, in cells: one vector."""
_GAP = 32
"""Kept cells that a run may include: starting a new run costs as much as computing these in vain."""
_EASY = _F4(0.5)
"""If at least this fraction of every diagonal flows to kept pixels, Jacobi alone is good enough."""
_HEIGHT, _WIDTH, _START, _RUNS, _COUNT = range(5)


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
    residual: Flat
    guess: Flat
    work: Flat
    exact: Exact
    """The diagonal of the pixel level in float64."""
    known: Flat
    fill: Flat
    direction: Flat
    row: Flat
    bottom: Exact
    """The inverse of the coarsest matrix."""
    deepest: NDArray[np.int64]
    """One number: the last level that the current image needs."""
    steps: Exact
    """The coefficients α (step length) and β (share of the last direction) of conjugate gradients."""


def _compiled(function: Function, *, inline: str = "never", fastmath: Any = True) -> Function:
    """Compile a part of `fill_planes`, the only function called from Python and cached; inline what is called once."""
    njit: Any = numba.njit
    wrappers = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return cast(Function, njit(nogil=True, error_model="numpy", fastmath=fastmath, inline=inline, **wrappers)(function))


def _cached(function: Function) -> Function:
    """Cache machine code on disk or, if numba has no writable cache directory, compile in each process."""
    options = partial(numba.njit, nogil=True, error_model="numpy", fastmath=True)
    try:
        return cast(Function, options(cache=True)(function))
    except RuntimeError:  # "cannot cache function: no locator available"
        return cast(Function, options()(function))


def sizes(height: int, width: int) -> list[tuple[int, int]]:
    """Heights and widths of the levels, the pixels first; an even side gets one node beyond its end."""
    levels = [(height, width)]
    while len(levels) == 1 or max(levels[-1]) > _COARSEST:
        levels.append((levels[-1][0] // 2 + 1, levels[-1][1] // 2 + 1))
    return levels


def make_space(height: int, width: int, limit: int) -> Space:
    levels = sizes(height, width)
    lengths = [(h + 3) * (w + 1) + _STEP for h, w in levels]
    starts = np.cumsum([0, *lengths])
    pixels, total, half = lengths[0], int(starts[-1]), (height // 2 + 4) * (width + 4)
    runs = np.cumsum([0] + [length // _STEP + 1 for length in lengths])

    def flat(size: int) -> Flat:
        return np.zeros(size, _F4)

    links = Links(*(flat(total) for _ in Links._fields))
    return Space(
        table=np.array([(h, w, starts[i], runs[i], 0) for i, (h, w) in enumerate(levels)], np.int64),
        runs=np.zeros((runs[-1], 2), _U8),
        links=links,
        half=Links(*(flat(half) for _ in Links._fields)),
        inverse=flat(total),
        residual=flat(total),
        guess=flat(total),
        work=flat(total),
        exact=np.zeros(pixels),
        # Once the coarse matrices are built, the links of the pixel level are constants; their memory is reused.
        known=links.east[:pixels],
        fill=links.south[:pixels],
        direction=links.southeast[:pixels],
        row=flat(width + 4),
        bottom=np.zeros((levels[-1][0] * levels[-1][1],) * 2),
        deepest=np.zeros(1, np.int64),
        steps=np.zeros((2, limit)),
    )


@_compiled
def _shape(space: Space, depth: int) -> tuple[int, int, int]:
    """Height, width and start of a level."""
    return space.table[depth, _HEIGHT], space.table[depth, _WIDTH], space.table[depth, _START]


@_compiled
def _span(space: Space, depth: int) -> tuple[Any, Any, Any]:
    """Stride, first and last flat index of a level."""
    height, width, start = _shape(space, depth)
    return _U8(width + 1), _U8(start + width + 2), _U8(start + (height + 1) * (width + 1))


@_compiled
def _runs_of(space: Space, depth: int) -> tuple[int, int]:
    return space.table[depth, _RUNS], space.table[depth, _RUNS] + space.table[depth, _COUNT]


@_compiled
def _around(x: Any, k: Any, stride: Any, ratio: Any) -> Any:
    """Σ weight·neighbor of pixel k: 1 for direct neighbors, `ratio` for diagonal ones."""
    direct = (x[k - stride] + x[k + stride]) + (x[k - _U1] + x[k + _U1])
    return direct + ratio * ((x[k - stride - _U1] + x[k - stride + _U1]) + (x[k + stride - _U1] + x[k + stride + _U1]))


@partial(_compiled, inline="always")
def _prepare(space: Space, removed: Mask, ratio: float) -> None:
    """All matrices of one image, shared by its channels."""
    space.guess[:] = 0
    space.work[:] = 0
    _init_pixels(space, removed, ratio)
    _link_pixels(space, _F4(ratio))
    _find_runs(space, 0)
    space.deepest[0] = 0
    for depth in range(1, len(space.table)):
        _halve_rows(space, depth)
        _halve_columns(space, depth)
        _sum_rows(space, depth)
        _invert_diagonal(space, depth)
        _find_runs(space, depth)
        space.deepest[0] = depth
        if depth < len(space.table) - 1 and _is_easy(space, depth):
            return
    _invert_coarsest(space)


@_compiled
def _init_pixels(space: Space, removed: Mask, ratio: float) -> None:
    """The diagonal and the mask (temporarily in `guess`). Missing neighbors at the border have weight 0."""
    mask, exact = space.guess, space.exact
    height, width = removed.shape
    for i in range(height):
        vertical = (i > 0) + (i < height - 1)
        inner, edge = 2 + vertical + ratio * (2 * vertical), 1 + vertical + ratio * vertical
        k, unknown = _U8((i + 1) * (width + 1) + 1), removed[i]
        for j in range(_U8(width)):
            mask[k + j] = _F4(unknown[j])
        for j in range(_U8(width)):
            exact[k + j] = inner * _F8(unknown[j])
        for j in (0, width - 1):
            exact[(i + 1) * (width + 1) + 1 + j] = (edge if width > 1 else _F8(vertical)) * _F8(unknown[j])


@_compiled
def _link_pixels(space: Space, ratio: Any) -> None:
    """Links between removed pixels; the rest of the diagonal is the flow to kept ones."""
    mask, exact, inverse, links = space.guess, space.exact, space.inverse, space.links
    absorbed, diagonal, east, south = links.absorbed, links.diagonal, links.east, links.south
    southeast, southwest = links.southeast, links.southwest
    s, first, last = _span(space, 0)
    for k in range(first, last):
        diagonal[k] = _F4(exact[k])
    for k in range(first, last):
        inverse[k] = _ONE / diagonal[k] if diagonal[k] > 0 else _ZERO
    for k in range(first, last):
        east[k] = mask[k] * mask[k + _U1]
    for k in range(first, last):
        south[k] = mask[k] * mask[k + s]
    for k in range(first, last):
        southeast[k] = ratio * mask[k] * mask[k + s + _U1]
    for k in range(first, last):
        southwest[k] = ratio * mask[k] * mask[k + s - _U1]
    for k in range(first, last):
        flow = diagonal[k] - mask[k] * _around(mask, k, s, ratio)
        absorbed[k] = flow if flow > 0 else _ZERO


@_compiled
def _find_runs(space: Space, depth: int) -> None:
    """Flat intervals that contain every unknown cell of a level."""
    inverse, runs = space.inverse, space.runs
    height, width, start = _shape(space, depth)
    begin, end = start + width + 2, start + (height + 1) * (width + 1)
    first = space.table[depth, _RUNS]
    run, last = first - 1, begin - _GAP - 1
    for a in range(begin, end, _STEP):
        b, total = min(a + _STEP, end), _ZERO
        for k in range(_U8(a), _U8(b)):
            total += inverse[k]
        if total > 0:
            if a - last > _GAP:
                run += 1
                runs[run, 0] = a
            runs[run, 1] = last = b
    space.table[depth, _COUNT] = run + 1 - first


@_compiled
def _halve_rows(space: Space, depth: int) -> None:
    """PᵀAP of the next finer level with P along columns: a row of nodes takes half of the rows above and below it."""
    fine, half = space.links, space.half
    east, south, southeast, southwest = fine.east, fine.south, fine.southeast, fine.southwest
    diagonal, absorbed = fine.diagonal, fine.absorbed
    east_to, south_to, southeast_to, southwest_to = half.east, half.south, half.southeast, half.southwest
    diagonal_to, absorbed_to = half.diagonal, half.absorbed
    _, width, start = _shape(space, depth - 1)
    nodes, _, _ = _shape(space, depth)
    wide = width + 4  # as `_halve_columns` reads two columns beyond the last
    for array in half:
        array[: (nodes + 3) * wide] = 0
    s, t = _U8(width + 1), _U8(wide)
    for i in range(nodes):
        k, out = _U8(start + (2 * i + 1) * (width + 1)), _U8((i + 1) * wide)
        for j in range(_U8(width)):
            straight = east[k + j] + _QUARTER * (east[k - s + j] + east[k + s + j])
            crossed = (southeast[k - s + j] + southwest[k - s + j + _U1]) + (southeast[k + j] + southwest[k + j + _U1])
            east_to[out + j] = straight + _HALF * crossed
        for j in range(_U8(width + 1)):
            south_to[out + j] = _HALF * (south[k + j] + south[k + s + j]) - _QUARTER * diagonal[k + s + j]
        for j in range(_U8(width)):
            southeast_to[out + j] = _HALF * (southeast[k + j] + southeast[k + s + j]) + _QUARTER * east[k + s + j]
        for j in range(_U8(width)):
            crossed = southwest[k + j + _U1] + southwest[k + s + j + _U1]
            southwest_to[out + j + _U1] = _HALF * crossed + _QUARTER * east[k + s + j]
        for j in range(_U8(width + 1)):
            absorbed_to[out + j] = absorbed[k + j] + _HALF * (absorbed[k - s + j] + absorbed[k + s + j])
    _sum(absorbed_to, east_to, south_to, southeast_to, southwest_to, diagonal_to, t, t + _U1, _U8(nodes + 1) * t)


@_compiled
def _halve_columns(space: Space, depth: int) -> None:
    """The other half of PᵀAP, with P along rows."""
    half, coarse = space.half, space.links
    east, south, southeast, southwest = half.east, half.south, half.southeast, half.southwest
    diagonal, absorbed = half.diagonal, half.absorbed
    east_to, south_to, southeast_to, southwest_to = coarse.east, coarse.south, coarse.southeast, coarse.southwest
    absorbed_to = coarse.absorbed
    _, width_from, _ = _shape(space, depth - 1)
    height, width, start = _shape(space, depth)
    for i in range(height):
        k, out = _U8((i + 1) * (width_from + 4)), _U8(start + (i + 1) * (width + 1) + 1)
        for j in range(_U8(width)):
            m = k + _U2 * j
            crossed = (southeast[m] + southwest[m + _U1]) + (southeast[m + _U1] + southwest[m + _U2])
            south_to[out + j] = south[m + _U1] + _QUARTER * (south[m] + south[m + _U2]) + _HALF * crossed
        for j in range(_U8(width)):
            m = k + _U2 * j
            east_to[out + j] = _HALF * (east[m + _U1] + east[m + _U2]) - _QUARTER * diagonal[m + _U2]
        for j in range(_U8(width)):
            m = k + _U2 * j
            southeast_to[out + j] = _HALF * (southeast[m + _U1] + southeast[m + _U2]) + _QUARTER * south[m + _U2]
        for j in range(_U8(width)):
            m = k + _U2 * j
            southwest_to[out + j] = _HALF * (southwest[m] + southwest[m + _U1]) + _QUARTER * south[m]
        for j in range(_U8(width)):
            m = k + _U2 * j
            absorbed_to[out + j] = absorbed[m + _U1] + _HALF * (absorbed[m] + absorbed[m + _U2])


@_compiled
def _sum(
    absorbed: Flat, east: Flat, south: Flat, southeast: Flat, southwest: Flat, diagonal: Flat, s: Any, a: Any, b: Any
) -> None:
    """diagonal = absorbed + all links: no cancellation, so that float32 keeps the matrix positive definite."""
    for k in range(a, b):
        diagonal[k] = absorbed[k] + (east[k - _U1] + east[k]) + (south[k - s] + south[k])
    for k in range(a, b):
        diagonal[k] += (southeast[k - s - _U1] + southeast[k]) + (southwest[k - s + _U1] + southwest[k])


@_compiled
def _sum_rows(space: Space, depth: int) -> None:
    links = space.links
    s, a, b = _span(space, depth)
    _sum(links.absorbed, links.east, links.south, links.southeast, links.southwest, links.diagonal, s, a, b)


@_compiled
def _is_easy(space: Space, depth: int) -> bool:
    """Whether every node is coupled to kept pixels so strongly that Jacobi alone solves this level."""
    absorbed, diagonal = space.links.absorbed, space.links.diagonal
    _, first, last = _span(space, depth)
    weak = 0
    for k in range(first, last):
        weak += absorbed[k] < _EASY * diagonal[k]
    return weak == 0


@_compiled
def _invert_diagonal(space: Space, depth: int) -> None:
    """1 / max(diagonal, half the row's absolute sum): where links are negative, plain Jacobi would diverge."""
    links, inverse = space.links, space.inverse
    east, south, southeast, southwest = links.east, links.south, links.southeast, links.southwest
    diagonal = links.diagonal
    s, first, last = _span(space, depth)
    for k in range(first, last):
        inverse[k] = (abs(east[k - _U1]) + abs(east[k])) + (abs(south[k - s]) + abs(south[k]))
    for k in range(first, last):
        crossed = (abs(southeast[k - s - _U1]) + abs(southeast[k])) + (abs(southwest[k - s + _U1]) + abs(southwest[k]))
        bound = _HALF * (diagonal[k] + inverse[k] + crossed)
        bound = bound if bound > diagonal[k] else diagonal[k]
        inverse[k] = _ONE / bound if bound > 0 else _ZERO


@_compiled
def _invert_coarsest(space: Space) -> None:
    """Gauss-Jordan. Nodes that share all their pixels make the matrix singular; a small diagonal shift fixes it."""
    links, inverse = space.links, space.bottom
    height, width, start = _shape(space, len(space.table) - 1)
    inverse[:] = 0.0
    for cell in range(height * width):
        i, j = cell // width, cell % width
        k = start + (i + 1) * (width + 1) + j + 1
        inverse[cell, cell] = (1 + SINGULAR) * links.diagonal[k] if links.diagonal[k] > 0 else 1.0
        if j + 1 < width:
            inverse[cell, cell + 1] = inverse[cell + 1, cell] = -links.east[k]
        if i + 1 < height:
            inverse[cell, cell + width] = inverse[cell + width, cell] = -links.south[k]
            if j + 1 < width:
                inverse[cell, cell + width + 1] = inverse[cell + width + 1, cell] = -links.southeast[k]
            if j > 0:
                inverse[cell, cell + width - 1] = inverse[cell + width - 1, cell] = -links.southwest[k]
    for pivot in range(height * width):
        scale = 1.0 / inverse[pivot, pivot]
        inverse[pivot, pivot] = 1.0
        for column in range(height * width):
            inverse[pivot, column] *= scale
        for row in range(height * width):
            factor = inverse[row, pivot] if row != pivot else 0.0
            inverse[row, pivot] -= factor
            for column in range(height * width):
                inverse[row, column] -= factor * inverse[pivot, column]


@partial(_compiled, inline="always")
def _cycle(space: Space, ratio: float) -> float:
    """work ≈ A⁻¹·residual on the pixels; returns their product."""
    _first_guess(space, 0)
    if space.deepest[0] > 0:
        _pixel_residual(space, _F4(ratio))
        _restrict(space, 0)
        _coarse_cycle(space, space.deepest[0])
        _interpolate(space, 0)
    return _smooth_pixels(space, _F4(ratio))


@partial(_compiled, inline="always")
def _coarse_cycle(space: Space, deepest: int) -> None:
    """work ≈ A⁻¹·residual on the first coarse level"""
    for depth in range(1, deepest):
        _first_guess(space, depth)
        _coarse_residual(space, depth)
        _restrict(space, depth)
    if deepest == len(space.table) - 1:
        _solve_coarsest(space, deepest)
    else:
        _first_guess(space, deepest)
        _coarse_residual(space, deepest)
        _step(space, deepest)
    for depth in range(deepest - 1, 0, -1):
        _interpolate(space, depth)
        _coarse_residual(space, depth)
        _step(space, depth)


@_compiled
def _first_guess(space: Space, depth: int) -> None:
    """One step of damped Jacobi from 0."""
    guess, inverse, residual, runs = space.guess, space.inverse, space.residual, space.runs
    first, last = _runs_of(space, depth)
    for run in range(first, last):
        for k in range(runs[run, 0], runs[run, 1]):
            guess[k] = _DAMPING * inverse[k] * residual[k]


@_compiled
def _pixel_residual(space: Space, ratio: Any) -> None:
    """work = residual − A·guess; after `_first_guess`, diagonal·guess is damping·residual."""
    guess, inverse, residual, work, runs = space.guess, space.inverse, space.residual, space.work, space.runs
    s, rest = _U8(space.table[0, 1] + 1), _ONE - _DAMPING
    first, last = _runs_of(space, 0)
    for run in range(first, last):
        for k in range(runs[run, 0], runs[run, 1]):
            value = rest * residual[k] + _around(guess, k, s, ratio)
            work[k] = value if inverse[k] > 0 else _ZERO


@_compiled
def _smooth_pixels(space: Space, ratio: Any) -> float:
    """work = guess after one step of damped Jacobi; returns residual·work."""
    guess, inverse, residual, work, runs = space.guess, space.inverse, space.residual, space.work, space.runs
    s, rest, total = _U8(space.table[0, 1] + 1), _ONE - _DAMPING, 0.0
    first, last = _runs_of(space, 0)
    for run in range(first, last):
        product = _ZERO
        for k in range(runs[run, 0], runs[run, 1]):
            value = rest * guess[k] + _DAMPING * inverse[k] * (residual[k] + _around(guess, k, s, ratio))
            work[k] = value
            product += value * residual[k]
        total += _F8(product)
    return total


@_compiled
def _coarse_residual(space: Space, depth: int) -> None:
    """work = residual − A·guess"""
    guess, residual, work, runs, links = space.guess, space.residual, space.work, space.runs, space.links
    east, south, southeast, southwest = links.east, links.south, links.southeast, links.southwest
    diagonal, s = links.diagonal, _U8(space.table[depth, 1] + 1)
    first, last = _runs_of(space, depth)
    for run in range(first, last):
        for k in range(runs[run, 0], runs[run, 1]):
            along = east[k - _U1] * guess[k - _U1] + east[k] * guess[k + _U1]
            across = south[k - s] * guess[k - s] + south[k] * guess[k + s]
            falling = southeast[k - s - _U1] * guess[k - s - _U1] + southeast[k] * guess[k + s + _U1]
            rising = southwest[k - s + _U1] * guess[k - s + _U1] + southwest[k] * guess[k + s - _U1]
            work[k] = residual[k] - diagonal[k] * guess[k] + (along + across) + (falling + rising)


@_compiled
def _step(space: Space, depth: int) -> None:
    """With the residual in `work`, one step of damped Jacobi: the new guess is in `work`."""
    guess, inverse, work, runs = space.guess, space.inverse, space.work, space.runs
    first, last = _runs_of(space, depth)
    for run in range(first, last):
        for k in range(runs[run, 0], runs[run, 1]):
            work[k] = guess[k] + _DAMPING * inverse[k] * work[k]


@_compiled
def _restrict(space: Space, depth: int) -> None:
    """Pᵀ·work: a node gathers itself, half of its direct and a quarter of its diagonal neighbors."""
    work, residual, row = space.work, space.residual, space.row
    _, width, start = _shape(space, depth)
    height_to, width_to, start_to = _shape(space, depth + 1)
    s = _U8(width + 1)
    row[width + 1] = row[width + 2] = 0
    for i in range(height_to):
        k, out = _U8(start + (2 * i + 1) * (width + 1)), _U8(start_to + (i + 1) * (width_to + 1) + 1)
        for j in range(s):
            row[j] = work[k + j] + _HALF * (work[k + j - s] + work[k + j + s])
        for j in range(_U8(width_to)):
            residual[out + j] = row[_U2 * j + _U1] + _HALF * (row[_U2 * j] + row[_U2 * j + _U2])


@_compiled
def _interpolate(space: Space, depth: int) -> None:
    """Add P·work of the next level to guess; its rows are first interpolated into a free buffer."""
    work, guess, inverse, wide = space.work, space.guess, space.inverse, space.half.east
    height, width, start = _shape(space, depth)
    nodes, width_from, start_from = _shape(space, depth + 1)
    s = _U8(width + 1)
    for i in range(nodes):
        k, out = _U8(start_from + (i + 1) * (width_from + 1) + 1), _U8(i * (width + 2))
        for j in range(_U8(width_from)):
            wide[out + _U2 * j] = work[k + j]
            wide[out + _U2 * j + _U1] = _HALF * (work[k + j] + work[k + j + _U1])
    for i in range(0, height, 2):
        k, near, far = (
            _U8(start + (i + 1) * (width + 1) + 1),
            _U8(i // 2 * (width + 2)),
            _U8((i // 2 + 1) * (width + 2)),
        )
        for j in range(_U8(width)):
            guess[k + j] += wide[near + j] if inverse[k + j] > 0 else _ZERO
        if i + 1 < height:
            for j in range(_U8(width)):
                value = _HALF * (wide[near + j] + wide[far + j])
                guess[k + s + j] += value if inverse[k + s + j] > 0 else _ZERO


@_compiled
def _solve_coarsest(space: Space, depth: int) -> None:
    residual, work, inverse = space.residual, space.work, space.bottom
    height, width, start = _shape(space, depth)
    first = start + width + 2
    for i in range(height * width):
        total = 0.0
        for p in range(height):
            for q in range(width):
                total += inverse[i, p * width + q] * residual[first + p * (width + 1) + q]
        work[first + i // width * (width + 1) + i % width] = _F4(total)


@_compiled
def _largest(values: Flat, size: int) -> float:
    """Largest absolute value, compared by bit patterns, which sort like numbers and whose maximum LLVM vectorizes."""
    bits, largest, result = values.view(np.int32), np.int32(0), np.empty(1, np.int32)
    for k in range(size):
        largest = max(largest, bits[k] & np.int32(0x7FFFFFFF))
    result[0] = largest
    return _F8(result.view(np.float32)[0])


@_compiled
def _update_direction(space: Space, keep: Any) -> None:
    """direction = work + keep·direction"""
    direction, work, runs = space.direction, space.work, space.runs
    first, last = _runs_of(space, 0)
    for run in range(first, last):
        for k in range(runs[run, 0], runs[run, 1]):
            direction[k] = work[k] + keep * direction[k]


@_compiled
def _apply(space: Space, ratio: Any) -> float:
    """work = A·direction; returns their product."""
    direction, diagonal, work, runs = space.direction, space.links.diagonal, space.work, space.runs
    s, total = _U8(space.table[0, 1] + 1), 0.0
    first, last = _runs_of(space, 0)
    for run in range(first, last):
        product = _ZERO
        for k in range(runs[run, 0], runs[run, 1]):
            value = diagonal[k] * direction[k] - _around(direction, k, s, ratio)
            value = value if diagonal[k] > 0 else _ZERO
            work[k] = value
            product += value * direction[k]
        total += _F8(product)
    return total


@_compiled
def _add(target: Flat, factor: Any, other: Flat, space: Space) -> None:
    runs = space.runs
    first, last = _runs_of(space, 0)
    for run in range(first, last):
        for k in range(runs[run, 0], runs[run, 1]):
            target[k] += factor * other[k]


@_compiled
def _true_residual(x: Flat, known: Flat, out: Flat, space: Space, ratio: float) -> None:
    """out = known − A·x in float64: for large removed regions float32 would lose the small differences that matter."""
    exact, runs, s = space.exact, space.runs, _U8(space.table[0, 1] + 1)
    first, last = _runs_of(space, 0)
    for run in range(first, last):
        for k in range(runs[run, 0], runs[run, 1]):
            direct = (_F8(x[k - s]) + _F8(x[k + s])) + (_F8(x[k - _U1]) + _F8(x[k + _U1]))
            crossed = (_F8(x[k - s - _U1]) + _F8(x[k - s + _U1])) + (_F8(x[k + s - _U1]) + _F8(x[k + s + _U1]))
            value = _F4(_F8(known[k]) - exact[k] * _F8(x[k]) + direct + ratio * crossed)
            out[k] = value if exact[k] > 0 else _ZERO


@partial(_compiled, inline="always")
def _converge(space: Space, ratio: float, tolerance: float, limit: int) -> tuple[int, float]:
    """Solve A·fill = known from fill = 0; returns iterations and the estimated largest error.

    With z = M·residual, M the cycle, the error of fill is (M·A)⁻¹z, and that of fill + z is (1 − M·A)(M·A)⁻¹z: at most
    |z|·(1 − λ)/λ in the energy norm, where λ is the smallest eigenvalue of M·A. The iteration knows only an
    estimate of λ, which may be too large, and the norm is replaced by the largest value, with a safety factor. So the
    result is an estimate that was tested (see `SAFETY`), not a bound.
    """
    steps, size = space.steps, len(space.fill)
    previous, estimate, largest = 1.0, np.inf, np.inf
    for iteration in range(limit):
        product = _cycle(space, ratio)
        if product == 0:
            return iteration, 0.0
        if iteration > 0:
            rate, largest = smallest_ritz(steps, iteration), _largest(space.work, size)
            estimate = largest * SAFETY * max((1 - rate) / rate, FLOOR)
            if estimate <= tolerance:
                _add(space.fill, _ONE, space.work, space)
                return iteration + 1, estimate
        steps[1, iteration] = product / previous if iteration > 0 else 0.0
        previous = product
        _update_direction(space, _F4(steps[1, iteration]))
        steps[0, iteration] = product / _apply(space, _F4(ratio))
        if not steps[0, iteration] > 0:
            break
        _add(space.fill, _F4(steps[0, iteration]), space.direction, space)
        if largest > 100 * tolerance:
            _add(space.residual, _F4(-steps[0, iteration]), space.work, space)
        else:  # close to convergence, use the true residual instead of the recursive one
            _true_residual(space.fill, space.known, space.residual, space, ratio)
    return limit, estimate


@_compiled
def smallest_ritz(steps: NDArray[np.float64], count: int) -> float:
    """Smallest Ritz value of conjugate gradients (Lanczos), by bisection with Sturm sequences."""
    low, high = 0.0, 2.0
    for _ in range(10):
        middle = 0.5 * (low + high)
        pivot, below = 1.0, False
        for i in range(count):
            diagonal, off = 1 / steps[0, i], 0.0
            if i > 0:
                diagonal += steps[1, i] / steps[0, i - 1]
                off = steps[1, i] / steps[0, i - 1] ** 2
            pivot = diagonal - middle - off / pivot
            if pivot <= 0:
                below = True
                break
        if below:
            high = middle
        else:
            low = middle
    return max(low, 1e-3)


@partial(_compiled, fastmath={"reassoc", "contract", "nsz"})  # NaN must be detected
def _kept_mean(image: Flat, removed: Mask) -> tuple[int, bool, float]:
    """Number of kept pixels, whether all are finite, and their mean."""
    total, count = 0.0, 0
    for i in range(image.shape[0]):
        for j in range(image.shape[1]):
            total += 0.0 if removed[i, j] else _F8(image[i, j])
            count += not removed[i, j]
    return count, bool(np.isfinite(total)), total / max(count, 1)


@partial(_compiled, inline="always")
def _init_channel(space: Space, image: Flat, removed: Mask, mean: Any, ratio: float) -> float:
    """The right-hand side from kept pixels minus their mean; returns the largest of these in magnitude."""
    direction, fill, known, residual = space.direction, space.fill, space.known, space.residual
    height, width = removed.shape
    direction[:] = 0
    fill[:] = 0
    for i in range(height):
        k, row, unknown = _U8((i + 1) * (width + 1) + 1), image[i], removed[i]
        for j in range(_U8(width)):
            direction[k + j] = _ZERO if unknown[j] else row[j] - mean
    largest = _largest(direction, len(direction))
    _true_residual(direction, fill, known, space, ratio)
    direction[:] = 0
    residual[: len(known)] = known
    return largest


@partial(_compiled, inline="always")
def _store_channel(space: Space, removed: Mask, mean: Any, out: Flat) -> None:
    fill = space.fill
    height, width = removed.shape
    for i in range(height):
        k, row, unknown = _U8((i + 1) * (width + 1) + 1), out[i], removed[i]
        for j in range(_U8(width)):
            row[j] = fill[k + j] + mean if unknown[j] else row[j]


@_compiled
def _add_noise(out: Flat, removed: Mask, field: Flat, deviation: Any) -> None:
    for i in range(out.shape[0]):
        row, unknown, noise = out[i], removed[i], field[i]
        for j in range(_U8(out.shape[1])):
            row[j] = row[j] + deviation * noise[j] if unknown[j] else row[j]


@_cached
def fill_planes(
    images: NDArray[np.float32],
    removed: Mask,
    first: int,
    last: int,
    ratio: float,
    tolerance: float,
    space: Space,
    noise: NDArray[np.float32],
    rows: NDArray[np.int64],
    deviation: float,
    filled: NDArray[np.float32],
    iterations: NDArray[np.int64],
    errors: NDArray[np.float64],
) -> None:
    """Fill planes `first` to `last` (image · channels + channel); the noise of image n is noise[rows[n]].

    Writes `filled`, `iterations` and `errors` (estimates, or the codes above).
    """
    channels = images.shape[1]
    prepared = -1
    for plane in range(first, last):
        n, c = plane // channels, plane % channels
        image, mask, out = images[n, c], removed[n], filled[n, c]
        out[:] = image
        if not mask.any():
            continue
        count, finite, mean = _kept_mean(image, mask)
        if count == 0 or not finite:
            errors[n, c] = NOT_FINITE if count else NOTHING_KEPT
            continue
        if prepared != n:
            _prepare(space, mask, ratio)
            prepared = n
        # Errors are relative to the pixel range, which is larger for data beyond [0, 1].
        unit = max(1.0, _init_channel(space, image, mask, _F4(mean), ratio))
        iterations[n, c], error = _converge(space, ratio, tolerance * unit, space.steps.shape[1])
        errors[n, c] = error / unit
        _store_channel(space, mask, _F4(mean), out)
        if deviation > 0:
            _add_noise(out, mask, noise[rows[n], c], _F4(deviation))


@_cached
def judged(
    records: NDArray[np.float64], unit: NDArray[np.float64], tolerance: float
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Errors and iterations of planes `(n, c)` by the rule of `_converge`, from the records of `multigrid_torch.py`.

    `records` `(iterations, 3, n, c)`: step length, share of the last direction, largest value of the cycle's result.
    The energy of the error only falls, so a plane that once was within the tolerance is so at the end.
    """
    count, _, images, channels = records.shape
    errors, iterations = np.full((images, channels), np.inf), np.full((images, channels), count)
    steps = np.empty((2, count))
    for n in range(images):
        for c in range(channels):
            for i in range(count):
                largest = records[i, 2, n, c]
                steps[0, i], steps[1, i] = records[i, 0, n, c], records[i, 1, n, c]
                if largest == 0:
                    errors[n, c] = 0.0
                elif i > 0:
                    rate = smallest_ritz(steps, i)
                    errors[n, c] = largest / unit[n, c] * SAFETY * max((1 - rate) / rate, FLOOR)
                if errors[n, c] <= tolerance:
                    iterations[n, c] = i + 1
                    break
                if not steps[0, i] > 0:
                    break
    return errors, iterations
