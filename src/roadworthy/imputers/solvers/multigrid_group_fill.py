"""Noisy Linear imputation of small images, compiled by numba: several planes at once, see `multigrid_group.py`."""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadworthy.imputers.solvers.multigrid_group import LARGEST, MEAN, WIDTH, Group, cells, collect, level, spread
from roadworthy.imputers.solvers.multigrid_group_matrices import prepare, weigh
from roadworthy.imputers.solvers.multigrid_group_steps import advance, begin, correct, judge
from roadworthy.imputers.solvers.multigrid_kernels import NOT_FINITE, NOTHING_KEPT, count_removed
from roadworthy.imputers.solvers.multigrid_lanes import (
    LANES,
    larger,
    load,
    magnitude,
    splat,
    store,
    where_positive,
    widened,
)
from roadworthy.imputers.solvers.multigrid_memory import F4, F8, ONE, U8, ZERO, Mask, cached, compiled

Images = NDArray[np.float32]
Planes = NDArray[np.float32]
"""`(planes, pixels)`"""
Masks = NDArray[np.bool_]
"""`(images, pixels)`"""


@compiled
def _load_masks(group: Group, masks: Masks, channels: int) -> None:
    size, planes = masks.shape[1], group.planes
    for lane in range(LANES):
        start, gone = U8(lane * (len(planes) // LANES)), masks[group.plane[lane] // channels]
        used = F4(group.unknown[lane] > 0)
        for j in range(U8(size)):
            planes[start + j] = used * F4(gone[j])
    spread(group, group.mask)


@compiled
def _load_pixels(group: Group, images: Planes, masks: Masks, channels: int) -> None:
    """Kept pixels minus their mean; 0 at removed ones."""
    size, planes = masks.shape[1], group.planes
    for lane in range(LANES):
        plane, start = group.plane[lane], U8(lane * (len(planes) // LANES))
        row, gone = images[plane], masks[plane // channels]
        for j in range(U8(size)):
            planes[start + j] = ZERO if gone[j] else row[j]
    spread(group, group.pixels)
    _center(group)


@compiled
def _center(group: Group) -> None:
    height, s, first = level(group.table, 0)
    width, pixels, mask, numbers = group.table[0, WIDTH], group.pixels, group.mask, group.numbers
    total = splat(F8(0))
    for k in range(first, first + height * s):
        total = total + widened(load(pixels, k))
    store(group.mean, 0, total)
    for lane in range(LANES):
        group.mean[lane] /= max(1, height * width - group.unknown[lane])
        numbers[LANES * MEAN + lane] = F4(group.mean[lane])
    mean, one, largest = load(numbers, MEAN), splat(ONE), splat(ZERO)
    for i in range(height):
        for k in range(first + i * s, first + i * s + width):
            value = where_positive(one - load(mask, k), load(pixels, k) - mean)
            store(pixels, k, value)
            largest = larger(magnitude(value), largest)
    store(numbers, LARGEST, largest)
    for lane in range(LANES):
        group.unit[lane] = max(1.0, F8(numbers[LANES * LARGEST + lane]))


@compiled
def _store_solved(
    group: Group, images: Planes, masks: Masks, noise: Planes, fields: Any, deviation: Any, filled: Planes
) -> None:
    """The solutions of lanes that were just solved, with their last `work` as correction, and noise."""
    planes, guess, channels = group.planes, group.guess, len(images) // len(masks)
    _, first, last = cells(group.table, 0)
    for k in range(first, last):  # the guess is not needed any more: the next residual comes with a new one
        store(guess, k, load(group.pixels, k) + load(group.work, k))
    collect(group, guess)
    for lane in range(LANES):
        if group.solved[lane]:
            plane, mean, start = group.plane[lane], F4(group.mean[lane]), U8(lane * (len(planes) // LANES))
            out, kept, gone = filled[plane], images[plane], masks[plane // channels]
            for j in range(U8(len(gone))):
                out[j] = planes[start + j] + mean if gone[j] else kept[j]
            if deviation > 0:
                field = noise[fields[plane // channels] * channels + plane % channels]
                for j in range(U8(len(gone))):
                    out[j] = out[j] + deviation * field[j] if gone[j] else out[j]


@partial(compiled, fastmath=False)  # NaN must be detected
def _activate(group: Group, lanes: int, images: Planes, filled: Planes, errors: NDArray[np.float64]) -> bool:
    """Activate the lanes in which there is something to solve; write the error so far, or a code."""
    size = images.shape[1]
    group.active[:] = False
    for lane in range(lanes):
        plane, unknown = group.plane[lane], group.unknown[lane]
        if unknown == 0 or unknown == size:
            filled[plane], errors[plane] = images[plane], NOTHING_KEPT if unknown else 0.0
        else:
            group.active[lane] = np.isfinite(group.mean[lane])
            errors[plane] = np.inf if group.active[lane] else NOT_FINITE
    return bool(group.active.any())


@partial(compiled, fastmath=False)
def _clear(group: Group, lanes: int, tolerance: float, errors: NDArray[np.float64]) -> None:
    """After planes that could not be solved, infinities and NaN would stay in the borders."""
    for lane in range(lanes):
        if not 0 <= errors[group.plane[lane]] <= tolerance:
            for values in (group.residual, group.guess, group.work):
                values[:] = 0


@cached
def fill_groups(
    images: Images,
    removed: Mask,
    first: int,
    last: int,
    ratio: float,
    tolerance: float,
    group: Group,
    noise: Images,
    rows: NDArray[np.int64],
    deviation: float,
    filled: Images,
    iterations: NDArray[np.int64],
    errors: NDArray[np.float64],
) -> None:
    """`fill_planes` for small images.

    In each lane is an image, whose channels are solved one after the other with the same matrices, or a plane if there
    are fewer images than lanes. This changes no result.
    """
    count, channels, height, width = images.shape
    planes, masks = images.reshape((count * channels, height * width)), removed.reshape((count, height * width))
    fields = noise.reshape((noise.shape[0] * noise.shape[1], noise.shape[2] * noise.shape[3]))
    solutions, errors_of = filled.reshape(planes.shape), errors.reshape(count * channels)
    iterations_of = iterations.reshape(count * channels)
    weigh(group, ratio)
    start = first
    while start < last:
        step = channels if start % channels == 0 and last - start >= LANES * channels else 1
        lanes = min(LANES, (last - start) // step)
        for lane in range(LANES):
            group.plane[lane] = start + min(lane, lanes - 1) * step
            group.unknown[lane] = count_removed(masks[group.plane[lane] // channels]) if lane < lanes else 0
        _load_masks(group, masks, channels)
        prepare(group, ratio)
        for _ in range(step):
            _load_pixels(group, planes, masks, channels)
            unsolved = _activate(group, lanes, planes, solutions, errors_of)
            if unsolved:
                begin(group, ratio)
            for iteration in range(group.steps.shape[2] if unsolved else 0):
                correct(group, ratio)
                for lane in range(LANES):
                    group.solved[lane] = False
                    if group.active[lane]:
                        errors_of[group.plane[lane]] = judge(group, lane, iteration, tolerance)
                        iterations_of[group.plane[lane]] = iteration + 1
                if group.solved.any():
                    _store_solved(group, planes, masks, fields, rows, F4(deviation), solutions)
                if not group.active.any():
                    break
                advance(group, iteration, ratio)
            _clear(group, lanes, tolerance, errors_of)
            group.plane[:] += 1
        start += LANES * step
