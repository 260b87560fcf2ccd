"""The matrices of one image, compiled by numba: the pixels, and PᵀAP level by level down to a dense inverse."""

from functools import partial
from typing import Any

from roadworthy.imputers.solvers.multigrid_memory import (
    COUNT,
    F4,
    HALF,
    QUARTER,
    RUNS,
    STEP,
    U1,
    U2,
    U8,
    ZERO,
    Flat,
    Mask,
    Space,
    around,
    compiled,
    shape,
    span,
)  # fmt: skip

DAMPING = 0.9
"""Of Jacobi smoothing. Below 1, because plain Jacobi does not damp a checkerboard if diagonal weights are 0."""
_DAMPING = F4(DAMPING)
SINGULAR = 1e-5
"""Relative shift of the diagonal of the coarsest matrix, which may be singular."""
_GAP = 32
"""Kept cells that a run may include: starting a new run costs as much as computing these in vain."""
_EASY = F4(0.5)
"""If at least this fraction of every diagonal flows to kept pixels, Jacobi alone is good enough."""


@partial(compiled, inline="always")
def prepare(space: Space, removed: Mask, ratio: float) -> None:
    """All matrices of one image, shared by its channels."""
    space.guess[:] = 0
    space.work[:] = 0
    _init_pixels(space, removed, ratio)
    _link_pixels(space, F4(ratio))
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


@compiled
def _init_pixels(space: Space, removed: Mask, ratio: float) -> None:
    """The diagonal and the mask (temporarily in `guess`). Missing neighbors at the border have weight 0."""
    mask, diagonal = space.guess, space.links.diagonal
    height, width = removed.shape
    for i in range(height):
        vertical = (i > 0) + (i < height - 1)
        inner, edge = F4(2 + vertical + ratio * (2 * vertical)), F4(1 + vertical + ratio * vertical)
        k, unknown = U8((i + 1) * (width + 1) + 1), removed[i]
        for j in range(U8(width)):
            mask[k + j] = F4(unknown[j])
        for j in range(U8(width)):
            diagonal[k + j] = inner * mask[k + j]
        diagonal[k + U8(width)] = ZERO
        for end in (U8(0), U8(width - 1)):
            diagonal[k + end] = (edge if width > 1 else F4(vertical)) * mask[k + end]


@compiled
def _link_pixels(space: Space, ratio: Any) -> None:
    """Links between removed pixels; the rest of the diagonal is the flow to kept ones."""
    mask, inverse, links = space.guess, space.inverse, space.links
    absorbed, diagonal, east, south = links.absorbed, links.diagonal, links.east, links.south
    southeast, southwest = links.southeast, links.southwest
    s, first, last = span(space, 0)
    for k in range(first, last):
        inverse[k] = _DAMPING / diagonal[k] if diagonal[k] > 0 else ZERO
    for k in range(first, last):
        east[k] = mask[k] * mask[k + U1]
    for k in range(first, last):
        south[k] = mask[k] * mask[k + s]
    for k in range(first, last):
        southeast[k] = ratio * mask[k] * mask[k + s + U1]
    for k in range(first, last):
        southwest[k] = ratio * mask[k] * mask[k + s - U1]
    for k in range(first, last):
        flow = diagonal[k] - mask[k] * around(mask, k, s, ratio)
        absorbed[k] = flow if flow > 0 else ZERO


@compiled
def _find_runs(space: Space, depth: int) -> None:
    """Flat intervals that contain every unknown cell of a level."""
    inverse, runs = space.inverse, space.runs
    height, width, start = shape(space, depth)
    begin, end = start + width + 2, start + (height + 1) * (width + 1)
    first = space.table[depth, RUNS]
    run, last = first - 1, begin - _GAP - 1
    for a in range(begin, end, STEP):
        b, total = min(a + STEP, end), ZERO
        for k in range(U8(a), U8(b)):
            total += inverse[k]
        if total > 0:
            if a - last > _GAP:
                run += 1
                runs[run, 0] = a
            runs[run, 1] = last = b
    space.table[depth, COUNT] = run + 1 - first


@compiled
def _halve_rows(space: Space, depth: int) -> None:
    """PᵀAP of the next finer level with P along columns: a row of nodes takes half of the rows above and below it."""
    fine, half = space.links, space.half
    east, south, southeast, southwest = fine.east, fine.south, fine.southeast, fine.southwest
    diagonal, absorbed = fine.diagonal, fine.absorbed
    east_to, south_to, southeast_to, southwest_to = half.east, half.south, half.southeast, half.southwest
    diagonal_to, absorbed_to = half.diagonal, half.absorbed
    _, width, start = shape(space, depth - 1)
    nodes, _, _ = shape(space, depth)
    wide = width + 4  # as `_halve_columns` reads two columns beyond the last
    for array in half:
        array[: (nodes + 3) * wide] = 0
    s, t = U8(width + 1), U8(wide)
    for i in range(nodes):
        k, out = U8(start + (2 * i + 1) * (width + 1)), U8((i + 1) * wide)
        for j in range(U8(width)):
            straight = east[k + j] + QUARTER * (east[k - s + j] + east[k + s + j])
            crossed = (southeast[k - s + j] + southwest[k - s + j + U1]) + (southeast[k + j] + southwest[k + j + U1])
            east_to[out + j] = straight + HALF * crossed
        for j in range(U8(width + 1)):
            south_to[out + j] = HALF * (south[k + j] + south[k + s + j]) - QUARTER * diagonal[k + s + j]
        for j in range(U8(width)):
            southeast_to[out + j] = HALF * (southeast[k + j] + southeast[k + s + j]) + QUARTER * east[k + s + j]
        for j in range(U8(width)):
            crossed = southwest[k + j + U1] + southwest[k + s + j + U1]
            southwest_to[out + j + U1] = HALF * crossed + QUARTER * east[k + s + j]
        for j in range(U8(width + 1)):
            absorbed_to[out + j] = absorbed[k + j] + HALF * (absorbed[k - s + j] + absorbed[k + s + j])
    _sum(absorbed_to, east_to, south_to, southeast_to, southwest_to, diagonal_to, t, t + U1, U8(nodes + 1) * t)


@compiled
def _halve_columns(space: Space, depth: int) -> None:
    """The other half of PᵀAP, with P along rows."""
    half, coarse = space.half, space.links
    east, south, southeast, southwest = half.east, half.south, half.southeast, half.southwest
    diagonal, absorbed = half.diagonal, half.absorbed
    east_to, south_to, southeast_to, southwest_to = coarse.east, coarse.south, coarse.southeast, coarse.southwest
    absorbed_to = coarse.absorbed
    _, width_from, _ = shape(space, depth - 1)
    height, width, start = shape(space, depth)
    for i in range(height):
        k, out = U8((i + 1) * (width_from + 4)), U8(start + (i + 1) * (width + 1) + 1)
        for j in range(U8(width)):
            m = k + U2 * j
            crossed = (southeast[m] + southwest[m + U1]) + (southeast[m + U1] + southwest[m + U2])
            south_to[out + j] = south[m + U1] + QUARTER * (south[m] + south[m + U2]) + HALF * crossed
        for j in range(U8(width)):
            m = k + U2 * j
            east_to[out + j] = HALF * (east[m + U1] + east[m + U2]) - QUARTER * diagonal[m + U2]
        for j in range(U8(width)):
            m = k + U2 * j
            southeast_to[out + j] = HALF * (southeast[m + U1] + southeast[m + U2]) + QUARTER * south[m + U2]
        for j in range(U8(width)):
            m = k + U2 * j
            southwest_to[out + j] = HALF * (southwest[m] + southwest[m + U1]) + QUARTER * south[m]
        for j in range(U8(width)):
            m = k + U2 * j
            absorbed_to[out + j] = absorbed[m + U1] + HALF * (absorbed[m] + absorbed[m + U2])


@compiled
def _sum(
    absorbed: Flat, east: Flat, south: Flat, southeast: Flat, southwest: Flat, diagonal: Flat, s: Any, a: Any, b: Any
) -> None:
    """diagonal = absorbed + all links: no cancellation, so that float32 keeps the matrix positive definite."""
    for k in range(a, b):
        diagonal[k] = absorbed[k] + (east[k - U1] + east[k]) + (south[k - s] + south[k])
    for k in range(a, b):
        diagonal[k] += (southeast[k - s - U1] + southeast[k]) + (southwest[k - s + U1] + southwest[k])


@compiled
def _sum_rows(space: Space, depth: int) -> None:
    links = space.links
    s, a, b = span(space, depth)
    _sum(links.absorbed, links.east, links.south, links.southeast, links.southwest, links.diagonal, s, a, b)


@compiled
def _is_easy(space: Space, depth: int) -> bool:
    """Whether every node is coupled to kept pixels so strongly that Jacobi alone solves this level."""
    absorbed, diagonal = space.links.absorbed, space.links.diagonal
    _, first, last = span(space, depth)
    weak = 0
    for k in range(first, last):
        weak += absorbed[k] < _EASY * diagonal[k]
    return weak == 0


@compiled
def _invert_diagonal(space: Space, depth: int) -> None:
    """Damping / max(diagonal, half the row's absolute sum): where links are negative, plain Jacobi would diverge."""
    links, inverse = space.links, space.inverse
    east, south, southeast, southwest = links.east, links.south, links.southeast, links.southwest
    diagonal = links.diagonal
    s, first, last = span(space, depth)
    for k in range(first, last):
        inverse[k] = (abs(east[k - U1]) + abs(east[k])) + (abs(south[k - s]) + abs(south[k]))
    for k in range(first, last):
        crossed = (abs(southeast[k - s - U1]) + abs(southeast[k])) + (abs(southwest[k - s + U1]) + abs(southwest[k]))
        bound = HALF * (diagonal[k] + inverse[k] + crossed)
        bound = bound if bound > diagonal[k] else diagonal[k]
        inverse[k] = _DAMPING / bound if bound > 0 else ZERO


@compiled
def _invert_coarsest(space: Space) -> None:
    """Gauss-Jordan. Nodes that share all their pixels make the matrix singular; a small diagonal shift fixes it."""
    links, inverse = space.links, space.dense
    height, width, start = shape(space, len(space.table) - 1)
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
    for row in range(height * width):
        for column in range(height * width):
            space.bottom[row * height * width + column] = F4(inverse[row, column])
