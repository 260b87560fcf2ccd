"""Noisy Linear imputation of planes, compiled by numba: conjugate gradients preconditioned by a V-cycle, and noise."""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from roadworthy.imputers.solvers.multigrid_cycle import cycle
from roadworthy.imputers.solvers.multigrid_matrices import prepare
from roadworthy.imputers.solvers.multigrid_memory import (
    F4,
    F8,
    ONE,
    U1,
    U8,
    ZERO,
    Flat,
    Mask,
    Space,
    around,
    cached,
    compiled,
    runs_of,
)  # fmt: skip

SAFETY, FLOOR = 4.0, 0.15
"""Of the error estimate, see `_converge`. With residuals in float64, over 1,300 masks of
ten kinds, the largest error was half the tolerance."""
NOT_FINITE, NOTHING_KEPT = -1.0, -2.0
"""Codes that take the place of an error estimate."""
_SHALLOW = 3
"""If coarsening may stop at this level, rounding errors of the residual stay small and are not corrected."""


@compiled
def _largest(values: Flat, size: int) -> float:
    """Largest absolute value, compared by bit patterns, which sort like numbers and whose maximum LLVM vectorizes."""
    bits, largest, result = values.view(np.int32), np.int32(0), np.empty(1, np.int32)
    for k in range(size):
        largest = max(largest, bits[k] & np.int32(0x7FFFFFFF))
    result[0] = largest
    return F8(result.view(np.float32)[0])


@compiled
def _update_direction(space: Space, keep: Any) -> None:
    """direction = work + keep·direction"""
    direction, work, runs = space.direction, space.work, space.runs
    first, last = runs_of(space, 0)
    for run in range(first, last):
        for k in range(runs[run, 0], runs[run, 1]):
            direction[k] = work[k] + keep * direction[k]


@compiled
def _apply(space: Space, ratio: Any) -> float:
    """work = A·direction; returns their product."""
    direction, diagonal, work, runs = space.direction, space.links.diagonal, space.work, space.runs
    s, total = U8(space.table[0, 1] + 1), 0.0
    first, last = runs_of(space, 0)
    for run in range(first, last):
        product = ZERO
        for k in range(runs[run, 0], runs[run, 1]):
            value = diagonal[k] * direction[k] - around(direction, k, s, ratio)
            value = value if diagonal[k] > 0 else ZERO
            work[k] = value
            product += value * direction[k]
        total += F8(product)
    return total


@compiled
def _add(target: Flat, factor: Any, other: Flat, space: Space) -> None:
    runs = space.runs
    first, last = runs_of(space, 0)
    for run in range(first, last):
        for k in range(runs[run, 0], runs[run, 1]):
            target[k] += factor * other[k]


@partial(compiled, fastmath={"contract", "nsz"})  # differences first: sums of values would lose them
def _true_residual(space: Space, removed: Mask, ratio: float) -> None:
    """residual = Σ weight·(neighbor − x) at removed pixels: small also where a large region is smooth."""
    x, inverse, residual, runs = space.pixels, space.inverse, space.residual, space.runs
    s, diagonal = U8(space.table[0, 1] + 1), F4(ratio)
    first, last = runs_of(space, 0)
    for run in range(first, last):
        for k in range(runs[run, 0], runs[run, 1]):
            here = x[k]
            direct = ((x[k - s] - here) + (x[k + s] - here)) + ((x[k - U1] - here) + (x[k + U1] - here))
            above = (x[k - s - U1] - here) + (x[k - s + U1] - here)
            value = direct + diagonal * (above + ((x[k + s - U1] - here) + (x[k + s + U1] - here)))
            residual[k] = value if inverse[k] > 0 else ZERO
    height, width = removed.shape
    for i in range(height):
        start = U8((i + 1) * (width + 1) + 1)
        vertical = (i > 0) + (i < height - 1)
        if vertical < 2:
            for j in range(U8(1), U8(width) - U1):
                residual[start + j] = _border_residual(x, start + j, s, removed[i, j], vertical, 2, ratio)
        for end in (U8(0), U8(width) - U1):
            residual[start + end] = _border_residual(
                x, start + end, s, removed[i, end], vertical, min(width - 1, 1), ratio
            )


@compiled
def _border_residual(x: Flat, k: Any, s: Any, unknown: bool, vertical: int, horizontal: int, ratio: float) -> Any:
    """The same for a pixel with fewer neighbors; in float64, because zeros stand for the missing ones."""
    direct = (F8(x[k - s]) + F8(x[k + s])) + (F8(x[k - U1]) + F8(x[k + U1]))
    crossed = (F8(x[k - s - U1]) + F8(x[k - s + U1])) + (F8(x[k + s - U1]) + F8(x[k + s + U1]))
    total = vertical + horizontal + ratio * (vertical * horizontal)
    return F4(direct + ratio * crossed - total * F8(x[k])) if unknown else ZERO


@partial(compiled, inline="always")
def _converge(space: Space, removed: Mask, ratio: float, tolerance: float, limit: int) -> tuple[int, float]:
    """Solve from 0 at the removed pixels; returns iterations and the estimated largest error.

    With z = M·residual, M the cycle, the error of x is (M·A)⁻¹z, and that of x + z is (1 − M·A)(M·A)⁻¹z: at most
    |z|·(1 − λ)/λ in the energy norm, where λ is the smallest eigenvalue of M·A. The iteration knows only an
    estimate of λ, which may be too large, and the norm is replaced by the largest value, with a safety factor. So the
    result is an estimate that was tested (see `SAFETY`), not a bound.
    """
    steps, size = space.steps, len(space.pixels)
    shallow = space.deepest[0] < min(_SHALLOW + 1, len(space.table) - 1)
    previous, estimate, largest = 1.0, np.inf, np.inf
    for iteration in range(limit):
        product = cycle(space, ratio)
        if product == 0:
            return iteration, 0.0
        if iteration > 0:
            largest = _largest(space.work, size)
            estimate = estimated_error(steps, iteration, largest)
            if estimate <= tolerance:
                _add(space.pixels, ONE, space.work, space)
                return iteration + 1, estimate
        steps[1, iteration] = product / previous if iteration > 0 else 0.0
        previous = product
        _update_direction(space, F4(steps[1, iteration]))
        steps[0, iteration] = product / _apply(space, F4(ratio))
        if not steps[0, iteration] > 0:
            break
        _add(space.pixels, F4(steps[0, iteration]), space.direction, space)
        if shallow or largest > 100 * tolerance:
            _add(space.residual, F4(-steps[0, iteration]), space.work, space)
        else:  # close to convergence, use the true residual instead of the recursive one
            _true_residual(space, removed, ratio)
    return limit, estimate


@compiled
def estimated_error(steps: NDArray[np.float64], iteration: int, largest: float) -> float:
    """From the largest value of the cycle's result, see `_converge`."""
    rate = _smallest_ritz(steps, iteration)
    return largest * SAFETY * max((1 - rate) / rate, FLOOR)


@compiled
def _smallest_ritz(steps: NDArray[np.float64], count: int) -> float:
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


@partial(compiled, fastmath={"reassoc", "contract", "nsz"})  # NaN must be detected
def _kept_mean(image: Flat, removed: Mask, kept: int) -> tuple[bool, float]:
    """Whether all kept pixels are finite, and their mean."""
    total = 0.0
    for i in range(image.shape[0]):
        for j in range(image.shape[1]):
            total += 0.0 if removed[i, j] else F8(image[i, j])
    return bool(np.isfinite(total)), total / kept


@compiled
def count_removed(removed: Mask) -> int:
    count = 0
    for gone in removed.flat:
        count += bool(gone)
    return count


@partial(compiled, inline="always")
def _init_channel(space: Space, image: Flat, removed: Mask, mean: Any, ratio: float) -> float:
    """Kept pixels minus their mean, and the residual; returns the largest of these pixels in magnitude."""
    pixels = space.pixels
    height, width = removed.shape
    pixels[:] = 0
    space.direction[:] = 0
    for i in range(height):
        k, row, unknown = U8((i + 1) * (width + 1) + 1), image[i], removed[i]
        for j in range(U8(width)):
            pixels[k + j] = ZERO if unknown[j] else row[j] - mean
    _true_residual(space, removed, ratio)
    return _largest(pixels, len(pixels))


@partial(compiled, inline="always")
def _store_channel(space: Space, image: Flat, removed: Mask, mean: Any, out: Flat) -> None:
    pixels = space.pixels
    height, width = removed.shape
    for i in range(height):
        k, row, unknown, kept = U8((i + 1) * (width + 1) + 1), out[i], removed[i], image[i]
        for j in range(U8(width)):
            row[j] = pixels[k + j] + mean if unknown[j] else kept[j]


@compiled
def _add_noise(out: Flat, removed: Mask, field: Flat, deviation: Any) -> None:
    for i in range(out.shape[0]):
        row, unknown, noise = out[i], removed[i], field[i]
        for j in range(U8(out.shape[1])):
            row[j] = row[j] + deviation * noise[j] if unknown[j] else row[j]


@cached
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
    channels, pixels = images.shape[1], removed.shape[1] * removed.shape[2]
    current, unknown = -1, 0
    for plane in range(first, last):
        n, c = plane // channels, plane % channels
        image, mask, out = images[n, c], removed[n], filled[n, c]
        if n != current:
            current, unknown = n, count_removed(mask)
            if 0 < unknown < pixels:
                prepare(space, mask, ratio)
        if unknown == 0 or unknown == pixels:
            errors[n, c] = NOTHING_KEPT if unknown else 0.0
            out[:] = image
            continue
        finite, mean = _kept_mean(image, mask, pixels - unknown)
        if not finite:
            errors[n, c] = NOT_FINITE
            continue
        # Errors are relative to the pixel range, which is larger for data beyond [0, 1].
        unit = max(1.0, _init_channel(space, image, mask, F4(mean), ratio))
        iterations[n, c], error = _converge(space, mask, ratio, tolerance * unit, space.steps.shape[1])
        errors[n, c] = error / unit
        _store_channel(space, image, mask, F4(mean), out)
        if deviation > 0:
            _add_noise(out, mask, noise[rows[n], c], F4(deviation))


@cached
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
                    errors[n, c] = estimated_error(steps, i, largest / unit[n, c])
                if errors[n, c] <= tolerance:
                    iterations[n, c] = i + 1
                    break
                if not steps[0, i] > 0:
                    break
    return errors, iterations
