"""One V-cycle of multigrid, compiled by numba: damped Jacobi once before and once after the coarse correction."""

from functools import partial
from typing import Any

from roadworthy.imputers.solvers.multigrid_matrices import DAMPING
from roadworthy.imputers.solvers.multigrid_memory import (
    F4,
    F8,
    HALF,
    U1,
    U2,
    U8,
    ZERO,
    Space,
    around,
    compiled,
    runs_of,
    shape,
)  # fmt: skip

_REST = F4(1 - DAMPING)


@partial(compiled, inline="always")
def cycle(space: Space, ratio: float) -> float:
    """work ≈ A⁻¹·residual on the pixels; returns their product."""
    _first_guess(space, 0)
    if space.deepest[0] > 0:
        _pixel_residual(space, F4(ratio))
        _restrict(space, 0)
        _coarse_cycle(space, space.deepest[0])
        _interpolate(space, 0)
    return _smooth_pixels(space, F4(ratio))


@partial(compiled, inline="always")
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


@compiled
def _first_guess(space: Space, depth: int) -> None:
    """One step of damped Jacobi from 0."""
    guess, inverse, residual, runs = space.guess, space.inverse, space.residual, space.runs
    first, last = runs_of(space, depth)
    for run in range(first, last):
        for k in range(runs[run, 0], runs[run, 1]):
            guess[k] = inverse[k] * residual[k]


@compiled
def _pixel_residual(space: Space, ratio: Any) -> None:
    """work = residual − A·guess; after `_first_guess`, diagonal·guess is DAMPING·residual."""
    guess, inverse, residual, work, runs = space.guess, space.inverse, space.residual, space.work, space.runs
    s = U8(space.table[0, 1] + 1)
    first, last = runs_of(space, 0)
    for run in range(first, last):
        for k in range(runs[run, 0], runs[run, 1]):
            value = _REST * residual[k] + around(guess, k, s, ratio)
            work[k] = value if inverse[k] > 0 else ZERO


@compiled
def _smooth_pixels(space: Space, ratio: Any) -> float:
    """work = guess after one step of damped Jacobi; returns residual·work."""
    guess, inverse, residual, work, runs = space.guess, space.inverse, space.residual, space.work, space.runs
    s, total = U8(space.table[0, 1] + 1), 0.0
    first, last = runs_of(space, 0)
    for run in range(first, last):
        product = ZERO
        for k in range(runs[run, 0], runs[run, 1]):
            value = _REST * guess[k] + inverse[k] * (residual[k] + around(guess, k, s, ratio))
            work[k] = value
            product += value * residual[k]
        total += F8(product)
    return total


@compiled
def _coarse_residual(space: Space, depth: int) -> None:
    """work = residual − A·guess"""
    guess, residual, work, runs, links = space.guess, space.residual, space.work, space.runs, space.links
    east, south, southeast, southwest = links.east, links.south, links.southeast, links.southwest
    diagonal, s = links.diagonal, U8(space.table[depth, 1] + 1)
    first, last = runs_of(space, depth)
    for run in range(first, last):
        for k in range(runs[run, 0], runs[run, 1]):
            along = east[k - U1] * guess[k - U1] + east[k] * guess[k + U1]
            across = south[k - s] * guess[k - s] + south[k] * guess[k + s]
            falling = southeast[k - s - U1] * guess[k - s - U1] + southeast[k] * guess[k + s + U1]
            rising = southwest[k - s + U1] * guess[k - s + U1] + southwest[k] * guess[k + s - U1]
            work[k] = residual[k] - diagonal[k] * guess[k] + (along + across) + (falling + rising)


@compiled
def _step(space: Space, depth: int) -> None:
    """With the residual in `work`, one step of damped Jacobi: the new guess is in `work`."""
    guess, inverse, work, runs = space.guess, space.inverse, space.work, space.runs
    first, last = runs_of(space, depth)
    for run in range(first, last):
        for k in range(runs[run, 0], runs[run, 1]):
            work[k] = guess[k] + inverse[k] * work[k]


@compiled
def _restrict(space: Space, depth: int) -> None:
    """Pᵀ·work: a node gathers itself, half of its direct and a quarter of its diagonal neighbors."""
    work, residual, row = space.work, space.residual, space.row
    _, width, start = shape(space, depth)
    height_to, width_to, start_to = shape(space, depth + 1)
    s = U8(width + 1)
    row[width + 1] = row[width + 2] = 0
    for i in range(height_to):
        k, out = U8(start + (2 * i + 1) * (width + 1)), U8(start_to + (i + 1) * (width_to + 1) + 1)
        for j in range(s):
            row[j] = work[k + j] + HALF * (work[k + j - s] + work[k + j + s])
        for j in range(U8(width_to)):
            residual[out + j] = row[U2 * j + U1] + HALF * (row[U2 * j] + row[U2 * j + U2])


@compiled
def _interpolate(space: Space, depth: int) -> None:
    """Add P·work of the next level to guess; its rows are first interpolated into a free buffer."""
    work, guess, inverse, wide = space.work, space.guess, space.inverse, space.half.east
    height, width, start = shape(space, depth)
    nodes, width_from, start_from = shape(space, depth + 1)
    s = U8(width + 1)
    for i in range(nodes):
        k, out = U8(start_from + (i + 1) * (width_from + 1) + 1), U8(i * (width + 2))
        for j in range(U8(width_from)):
            wide[out + U2 * j] = work[k + j]
            wide[out + U2 * j + U1] = HALF * (work[k + j] + work[k + j + U1])
    for i in range(0, height, 2):
        k, near, far = (
            U8(start + (i + 1) * (width + 1) + 1),
            U8(i // 2 * (width + 2)),
            U8((i // 2 + 1) * (width + 2)),
        )
        for j in range(U8(width)):
            guess[k + j] += wide[near + j] if inverse[k + j] > 0 else ZERO
        if i + 1 < height:
            for j in range(U8(width)):
                value = HALF * (wide[near + j] + wide[far + j])
                guess[k + s + j] += value if inverse[k + s + j] > 0 else ZERO


@compiled
def _solve_coarsest(space: Space, depth: int) -> None:
    residual, work, inverse, row = space.residual, space.work, space.bottom, space.row
    height, width, start = shape(space, depth)
    nodes = U8(height * width)
    for i in range(height):
        k = U8(start + (i + 1) * (width + 1) + 1)
        for j in range(U8(width)):
            row[U8(i * width) + j] = residual[k + j]
    for i in range(height):
        for j in range(width):
            first, total = U8(i * width + j) * nodes, ZERO
            for m in range(nodes):
                total += inverse[first + m] * row[m]
            work[start + (i + 1) * (width + 1) + 1 + j] = total
