"""One V-cycle for a group of planes: damped Jacobi once before and once after the coarse correction."""

from typing import Any

from roadworthy.imputers.solvers.multigrid_group import HEIGHT, WIDTH, Group, cells, level
from roadworthy.imputers.solvers.multigrid_lanes import larger, load, magnitude, splat, store, where_positive
from roadworthy.imputers.solvers.multigrid_matrices import DAMPING
from roadworthy.imputers.solvers.multigrid_memory import F4, HALF, QUARTER, ZERO, compiled

_REST = F4(1 - DAMPING)


@compiled
def cycle(group: Group, ratio: float) -> tuple[Any, Any]:
    """work ≈ A⁻¹·residual on the pixels; returns their product and the largest value of `work`, of each lane.

    On each level, `guess` begins as one step of damped Jacobi from 0; that on the pixels comes with the residual.
    """
    deepest = len(group.table) - 1
    _pixel_residual(group, F4(ratio))
    _restrict(group, 0)
    for depth in range(1, deepest):
        _coarse_residual(group, depth, False)
        _restrict(group, depth)
    _solve_coarsest(group, deepest)
    for depth in range(deepest - 1, 0, -1):
        _interpolate(group, depth)
        _coarse_residual(group, depth, True)
    _interpolate(group, 0)
    return _smooth_pixels(group, F4(ratio))


@compiled
def _pixel_residual(group: Group, ratio: Any) -> None:
    """work = residual − A·guess, where diagonal·guess is DAMPING·residual."""
    guess, residual, work, mask = group.guess, group.residual, group.work, group.mask
    s, first, last = cells(group.table, 0)
    weight, remaining = splat(ratio), splat(_REST)
    left, left_sides = splat(ZERO), splat(ZERO)
    here, sides = load(guess, first), load(guess, first - s) + load(guess, first + s)
    for k in range(first, last):
        right, right_sides = load(guess, k + 1), load(guess, k + 1 - s) + load(guess, k + 1 + s)
        around = (sides + (left + right)) + weight * (left_sides + right_sides)
        store(work, k, load(mask, k) * (remaining * load(residual, k) + around))
        left, left_sides, here, sides = here, sides, right, right_sides


@compiled
def _smooth_pixels(group: Group, ratio: Any) -> tuple[Any, Any]:
    """work = guess after one step of damped Jacobi"""
    guess, residual, work, inverse = group.guess, group.residual, group.work, group.inverse
    s, first, last = cells(group.table, 0)
    weight, remaining = splat(ratio), splat(_REST)
    product, largest = splat(ZERO), splat(ZERO)
    left, left_sides = splat(ZERO), splat(ZERO)
    here, sides = load(guess, first), load(guess, first - s) + load(guess, first + s)
    for k in range(first, last):
        right, right_sides = load(guess, k + 1), load(guess, k + 1 - s) + load(guess, k + 1 + s)
        around = (sides + (left + right)) + weight * (left_sides + right_sides)
        known = load(residual, k)
        value = remaining * here + load(inverse, k) * (known + around)
        store(work, k, value)
        product, largest = product + value * known, larger(magnitude(value), largest)
        left, left_sides, here, sides = here, sides, right, right_sides
    return product, largest


@compiled
def _coarse_residual(group: Group, depth: int, smooth: bool) -> None:
    """work = residual − A·guess, or guess after one step of damped Jacobi"""
    guess, residual, work, links = group.guess, group.residual, group.work, group.links
    east, south, southeast, southwest = links.east, links.south, links.southeast, links.southwest
    diagonal, inverse = links.diagonal, group.inverse
    s, first, last = cells(group.table, depth)
    link = splat(ZERO)
    left_above, above = load(guess, first - s - 1), load(guess, first - s)
    left, here = load(guess, first - 1), load(guess, first)
    left_below, below = load(guess, first + s - 1), load(guess, first + s)
    for k in range(first, last):
        right_above, right, right_below = load(guess, k - s + 1), load(guess, k + 1), load(guess, k + s + 1)
        to_right = load(east, k)
        along = link * left + to_right * right
        across = load(south, k - s) * above + load(south, k) * below
        falling = load(southeast, k - s - 1) * left_above + load(southeast, k) * right_below
        rising = load(southwest, k - s + 1) * right_above + load(southwest, k) * left_below
        value = load(residual, k) - load(diagonal, k) * here + (along + across) + (falling + rising)
        store(work, k, here + load(inverse, k) * value if smooth else value)
        link, left_above, above, left, here = to_right, above, right_above, here, right
        left_below, below = below, right_below


@compiled
def _restrict(group: Group, depth: int) -> None:
    """Pᵀ·work: a node gathers itself, half of its direct and a quarter of its diagonal neighbors. And the guess."""
    work, residual, guess, inverse = group.work, group.residual, group.guess, group.inverse
    _, s, first = level(group.table, depth)
    height, stride, start = level(group.table, depth + 1)
    width = group.table[depth + 1, WIDTH]
    half = splat(HALF)
    for i in range(height):
        left = splat(ZERO)
        for j in range(width):
            k = first + 2 * i * s + 2 * j
            here = load(work, k) + half * (load(work, k - s) + load(work, k + s))
            right = load(work, k + 1) + half * (load(work, k + 1 - s) + load(work, k + 1 + s))
            out, value = start + i * stride + j, here + half * (left + right)
            store(residual, out, value)
            store(guess, out, load(inverse, out) * value)
            left = right


@compiled
def _interpolate(group: Group, depth: int) -> None:
    """Add P·work of the next level to guess."""
    work, guess, inverse = group.work, group.guess, group.inverse
    _, s, first = level(group.table, depth)
    nodes, stride, start = level(group.table, depth + 1)
    width = group.table[depth + 1, WIDTH]
    half, quarter = splat(HALF), splat(QUARTER)
    for i in range(nodes):
        out = start + i * stride
        here, below = load(work, out), load(work, out + stride)
        for j in range(width):
            k = first + 2 * i * s + 2 * j
            right, right_below = load(work, out + j + 1), load(work, out + j + 1 + stride)
            _add(guess, k, inverse, here)
            _add(guess, k + 1, inverse, half * (here + right))
            _add(guess, k + s, inverse, half * (here + below))
            _add(guess, k + s + 1, inverse, quarter * ((here + right) + (below + right_below)))
            here, below = right, right_below


@compiled
def _add(guess: Any, k: int, inverse: Any, value: Any) -> None:
    store(guess, k, load(guess, k) + where_positive(load(inverse, k), value))


@compiled
def _solve_coarsest(group: Group, depth: int) -> None:
    residual, work, bottom = group.residual, group.work, group.bottom
    _, stride, first = level(group.table, depth)
    height, width = group.table[depth, HEIGHT], group.table[depth, WIDTH]
    entry = 0
    for row in range(height * width):
        total = splat(ZERO)
        for i in range(height):
            for j in range(width):
                total = total + load(bottom, entry) * load(residual, first + i * stride + j)
                entry += 1
        store(work, first + row // width * stride + row % width, total)
