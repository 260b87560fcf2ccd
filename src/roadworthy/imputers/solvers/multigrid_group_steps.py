"""Conjugate gradients for a group of planes, each with its own steps and its own end.

The method is that of `multigrid_kernels.py`. As no plane may decide for the others, two things are the same for all: no
level is left out, and from the third iteration on the residual is computed anew.
"""

from functools import partial
from typing import Any

import numpy as np

from roadworthy.imputers.solvers.multigrid_group import KEEP, LARGEST, LENGTH, PRODUCT, WIDTH, Group, cells, level
from roadworthy.imputers.solvers.multigrid_group_cycle import cycle
from roadworthy.imputers.solvers.multigrid_kernels import FLOOR, SAFETY, estimated_error
from roadworthy.imputers.solvers.multigrid_lanes import LANES, load, splat, store
from roadworthy.imputers.solvers.multigrid_memory import F4, F8, ZERO, Flat, compiled

_RECURSIVE = 2
"""Iterations that update the residual; later it is computed anew, as rounding errors add up."""


@compiled
def begin(group: Group, ratio: float) -> None:
    """From 0 at removed pixels."""
    store(group.numbers, KEEP, splat(ZERO))
    group.direction[:] = 0
    _true_residual(group, ratio)


@compiled
def correct(group: Group, ratio: float) -> None:
    """work ≈ the error of the current solution"""
    product, largest = cycle(group, ratio)
    store(group.numbers, PRODUCT, product)
    store(group.numbers, LARGEST, largest)


@partial(compiled, fastmath=False)  # NaN must be detected
def judge(group: Group, lane: int, iteration: int, tolerance: float) -> float:
    """The estimated error of a lane once `work` is added; if too large, the share of the last direction is set."""
    product = F8(group.numbers[LANES * PRODUCT + lane])
    largest = F8(group.numbers[LANES * LARGEST + lane]) / group.unit[lane]
    error = 0.0 if product == 0 else np.inf
    if iteration > 0 and product > 0:
        error = largest * SAFETY * FLOOR  # a lower bound of the estimate, which costs more
        if error <= tolerance:
            error = estimated_error(group.steps[lane], iteration, largest)
    group.solved[lane] = error <= tolerance
    group.active[lane] = not group.solved[lane]
    keep = product / group.product[lane] if iteration > 0 and group.active[lane] else 0.0
    group.product[lane], group.steps[lane, 1, iteration] = product, keep
    group.numbers[LANES * KEEP + lane] = F4(keep)
    return error


@compiled
def advance(group: Group, iteration: int, ratio: float) -> None:
    """From `work`, the next direction, solution and residual."""
    numbers = group.numbers
    _update_direction(group, load(numbers, KEEP))
    store(numbers, PRODUCT, _apply(group, F4(ratio)))
    _measure_step(group, iteration)
    _add(group, load(numbers, LENGTH))
    if iteration < _RECURSIVE:
        _recursive_residual(group, load(numbers, LENGTH))
    else:
        _true_residual(group, ratio)


@partial(compiled, fastmath=False)  # NaN must be detected
def _measure_step(group: Group, iteration: int) -> None:
    """The step length of each lane; 0 for those that are not being solved, or cannot be."""
    numbers = group.numbers
    for lane in range(LANES):
        length = group.product[lane] / F8(numbers[LANES * PRODUCT + lane])
        group.active[lane] = group.active[lane] and length > 0
        length = length if group.active[lane] else 0.0
        group.steps[lane, 0, iteration], numbers[LANES * LENGTH + lane] = length, F4(length)


@compiled
def _update_direction(group: Group, keep: Any) -> None:
    """direction = work + keep·direction"""
    direction, work = group.direction, group.work
    _, first, last = cells(group.table, 0)
    for k in range(first, last):
        store(direction, k, load(work, k) + keep * load(direction, k))


@compiled
def _apply(group: Group, ratio: Any) -> Any:
    """work = A·direction; returns their product."""
    direction, work, mask, total = group.direction, group.work, group.mask, group.total
    s, first, last = cells(group.table, 0)
    weight, product = splat(ratio), splat(ZERO)
    left, left_sides = splat(ZERO), splat(ZERO)
    here, sides = load(direction, first), load(direction, first - s) + load(direction, first + s)
    for k in range(first, last):
        right, right_sides = load(direction, k + 1), load(direction, k + 1 - s) + load(direction, k + 1 + s)
        around = (sides + (left + right)) + weight * (left_sides + right_sides)
        value = load(mask, k) * (splat(total[k]) * here - around)
        store(work, k, value)
        product = product + value * here
        left, left_sides, here, sides = here, sides, right, right_sides
    return product


@compiled
def _add(group: Group, length: Any) -> None:
    """Add length·direction to the solution."""
    pixels, direction = group.pixels, group.direction
    _, first, last = cells(group.table, 0)
    for k in range(first, last):
        store(pixels, k, load(pixels, k) + length * load(direction, k))


@compiled
def _recursive_residual(group: Group, length: Any) -> None:
    """Subtract length·work, which is A·direction, from the residual."""
    work = group.work
    _, first, last = cells(group.table, 0)
    for k in range(first, last):
        _set_residual(group, k, load(group.residual, k) - length * load(work, k))


@compiled
def _true_residual(group: Group, ratio: float) -> None:
    """residual = Σ weight·(neighbor − x) at removed pixels: small also where a large region is smooth.

    It is summed from differences in a column, `bend`, and between columns, which neighbors share.
    """
    x, mask, weight = group.pixels, group.mask, splat(F4(ratio))
    height, s, first = level(group.table, 0)
    width = group.table[0, WIDTH]
    for i in range(height):
        start, end = first + i * s, first + i * s + width - 1
        up, down = splat(F4(i > 0)), splat(F4(i < height - 1))  # missing neighbors at the border have weight 0
        sideways = splat(F4(1 + ratio * ((i > 0) + (i < height - 1))))
        here, bend, left = load(x, start), _bend(x, start, s, up, down), splat(ZERO)
        for k in range(start, end):
            right, right_bend = load(x, k + 1), _bend(x, k + 1, s, up, down)
            onward = sideways * (right - here)
            _set_residual(group, k, load(mask, k) * ((left + bend) + (onward + weight * right_bend)))
            left, here, bend = weight * bend - onward, right, right_bend
        _set_residual(group, end, load(mask, end) * (left + bend))


@compiled
def _bend(x: Flat, k: int, s: int, up: Any, down: Any) -> Any:
    here = load(x, k)
    return up * (load(x, k - s) - here) + down * (load(x, k + s) - here)


@compiled
def _set_residual(group: Group, k: int, value: Any) -> None:
    """And guess = one step of damped Jacobi from 0."""
    store(group.residual, k, value)
    store(group.guess, k, load(group.inverse, k) * value)
