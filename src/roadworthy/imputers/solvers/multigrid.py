"""Noisy Linear imputation in linear time: conjugate gradients preconditioned by multigrid, compiled by numba.

The system, Σ weight·(x − neighbor) = 0 at each removed pixel (the paper, section 5.2), is symmetric positive definite.
The cycle is Galerkin multigrid (Briggs, Henson, McCormick, "A Multigrid Tutorial", chapters 3, 8 and 10): every other
pixel of every other row is a node of the next level, P interpolates linearly between nodes and leaves kept pixels at 0,
and the next level's matrix is PᵀAP, again with 9 entries per row. So masks of any shape, image borders and strips one
pixel wide need no special treatment. Damped Jacobi smooths once before and once after.

Each channel of each image is solved independently by one thread: its bytes do not depend on the rest of the batch.
"""

import threading
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import pairwise
from os import getpid
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from roadworthy.core.errors import EverythingRemovedError, RangeError, ShapeError, SolverError
from roadworthy.core.types import Images, Removed
from roadworthy.imputers.noise import Noise
from roadworthy.imputers.solvers.multigrid_group import Group, make_group
from roadworthy.imputers.solvers.multigrid_group_fill import fill_groups
from roadworthy.imputers.solvers.multigrid_kernels import NOT_FINITE, NOTHING_KEPT, fill_planes
from roadworthy.imputers.solvers.multigrid_lanes import LANES
from roadworthy.imputers.solvers.multigrid_memory import Space, make_space

TOLERANCE = 1e-4
"""Largest estimated error, for pixels in [0, 1]: one hundredth of the default noise. The estimate is not a bound; in
tests against exact solutions the true error stayed below it."""
LIMIT = 200
"""Iterations; typical masks take 3 to 7."""
_MIN_PARALLEL = 10_000
"""Number of values below which starting threads costs more than it saves."""

LARGEST_SMALL = 64 * 64
"""Pixels of an image that is solved in groups of planes, whose working memory then fits into the cache."""
_LARGEST_KEPT = 1 << 18
"""Pixels of an image whose working memory a thread keeps for its next call: at most 20 MB."""


def solve(images: Images, removed: Removed, weights: tuple[float, float], noise: Noise | None = None) -> Images:
    """Fill each image independently to an estimated `TOLERANCE`; kept pixels stay bit-equal, the input is unchanged."""
    check(images, removed, weights)
    pixels = images.detach().to("cpu", torch.float32).contiguous().numpy()
    masks = removed.detach().to("cpu").contiguous().numpy()
    filled = np.empty_like(pixels)
    iterations = np.zeros(pixels.shape[:2], np.int64)
    errors = np.zeros(pixels.shape[:2])
    count, channels, height, width = pixels.shape
    small = height * width <= LARGEST_SMALL
    fill: Any = fill_groups if small else fill_planes
    threads, chunks = _partition(count, channels, height, width)
    fields, rows, deviation = _arrays(noise, count)
    remaining = iter(chunks)

    def work() -> None:
        space = _space(height, width, LIMIT)
        for first, last in remaining:
            fill(
                pixels, masks, first, last, weights[1] / weights[0], TOLERANCE, space, fields, rows, deviation,
                filled, iterations, errors,
            )  # fmt: skip

    others = [_pool(getpid(), threads).submit(work) for _ in range(threads - 1)]
    work()
    for other in others:
        other.result()
    refuse_failures(errors, iterations, (height, width))
    return torch.from_numpy(filled).to(images.device)


_KEPT = threading.local()
"""The working memory that each thread used last: about 70 bytes per pixel of one plane."""


def _space(height: int, width: int, limit: int) -> Space | Group:
    """For one small image, making the memory anew would take as long as solving. Large ones would hold much memory."""
    name = (height, width, limit)
    if getattr(_KEPT, "name", None) == name:
        return _KEPT.space  # type: ignore[no-any-return]
    make = make_group if height * width <= LARGEST_SMALL else make_space
    space = make(height, width, limit)
    if height * width <= _LARGEST_KEPT:
        _KEPT.name, _KEPT.space = name, space
    return space


def _arrays(noise: Noise | None, count: int) -> tuple[NDArray[np.float32], NDArray[np.int64], float]:
    """The noise for the kernel, which adds it to each plane: a second pass over all images would cost a third more."""
    if noise is None:
        return np.zeros((1, 1, 1, 1), np.float32), np.zeros(count, np.int64), 0.0
    return np.ascontiguousarray(noise.fields.numpy()), noise.rows.numpy(), noise.deviation


def compile_now(height: int, width: int) -> None:
    """Compile the kernel for images of this size, or load it from the cache: about twenty seconds, once per machine."""
    side = 4 if height * width <= LARGEST_SMALL else 1 + int(LARGEST_SMALL**0.5)
    solve(torch.zeros(1, 1, side, side), torch.eye(side, dtype=torch.bool)[None], (1.0, 0.5))


def check(images: Images, removed: Removed, weights: tuple[float, float]) -> None:
    """Raise if shapes, dtype or weights are invalid."""
    if images.ndim != 4 or removed.shape != (len(images), *images.shape[2:]) or removed.dtype != torch.bool:
        raise ShapeError(
            f"images {tuple(images.shape)} and removed {tuple(removed.shape)} {removed.dtype} do not match: "
            "give (n, c, h, w) and bool (n, h, w)"
        )
    direct, diagonal = weights
    if not (0 < direct < np.inf and 0 <= diagonal < np.inf):
        raise RangeError(f"weights {weights}: give (direct, diagonal), direct > 0, diagonal >= 0")


def refuse_failures(errors: NDArray[np.float64], iterations: NDArray[np.int64], size: tuple[int, int]) -> None:
    """Raise unless every plane has converged; `errors` `(n, c)` are estimates, or codes such as `NOT_FINITE`."""
    if ((errors >= 0) & (errors <= TOLERANCE)).all():
        return
    for image in np.flatnonzero((errors == NOTHING_KEPT).any(axis=1)):
        raise EverythingRemovedError(f"no pixel is kept in image {image} of the batch: there is nothing to impute from")
    for image in np.flatnonzero((errors == NOT_FINITE).any(axis=1)):
        raise RangeError(f"image {image} of the batch has kept pixels that are NaN or infinite: fix or remove them")
    for image in np.flatnonzero(~(errors <= TOLERANCE).all(axis=1)):
        raise SolverError(
            f"image {image} of the batch ({size[0]} × {size[1]}) did not converge: after {iterations[image].max()} "
            f"iterations the error is still about {errors[image].max():.1e}, above {TOLERANCE:.0e}; "
            "use NoisyLinear(solve=roadworthy.imputers.solvers.direct.solve)"
        )


def _partition(count: int, channels: int, height: int, width: int) -> tuple[int, list[tuple[int, int]]]:
    """The number of threads, at most torch's (1 in a DataLoader worker), and the ranges of planes to solve together."""
    planes = count * channels
    threads = min(torch.get_num_threads(), planes)
    if threads <= 1 or planes * height * width < _MIN_PARALLEL:
        return 1, [(0, planes)]
    # The channels of an image share its matrices; they are split only if there are fewer images than threads.
    unit = channels if count >= threads else 1
    if height * width <= LARGEST_SMALL:
        unit = LANES * channels if count >= LANES * threads else LANES
    units = -(-planes // unit)
    ends = np.minimum(np.linspace(0, units, min(8 * threads, units) + 1).astype(int) * unit, planes)
    return threads, list(pairwise(ends.tolist()))


@lru_cache(maxsize=4)
def _pool(process: int, threads: int) -> ThreadPoolExecutor:
    """One pool per process: the threads of a parent process do not survive a fork."""
    return ThreadPoolExecutor(threads, thread_name_prefix="roadworthy-multigrid")
