"""Noisy Linear's fill in linear time: conjugate gradients, preconditioned by one multigrid cycle, compiled by numba.

The equation (paper, 5.2), Σ weight·(x − neighbor) = 0 at each removed pixel, is symmetric and positive definite.
The cycle is Galerkin multigrid (Briggs, Henson, McCormick, "A Multigrid Tutorial", chapters 3, 8 and 10): every other
pixel of every other row is a node of the next level, P interpolates linearly between nodes and leaves kept pixels at 0,
and the next level's matrix is PᵀAP, again with 9 entries per row. So holes of any shape, free borders and strips one
pixel wide need no special care. Damped Jacobi smooths once before and once after.

Each channel of each image is solved alone by one thread: its bytes depend on nothing else in the batch.
"""

from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from itertools import pairwise
from os import getpid

import numpy as np
import torch
from numpy.typing import NDArray

from roadworthy.core.errors import EverythingRemovedError, RangeError, ShapeError, SolverError
from roadworthy.core.types import Images, Removed
from roadworthy.imputers.noise import Noise
from roadworthy.imputers.solvers.multigrid_kernels import NOT_FINITE, NOTHING_KEPT, fill_planes, make_space

TOLERANCE = 1e-4
"""Largest error against the exact solution, in the pixel range [0, 1]: a hundredth of the noise added later."""
LIMIT = 200
"""Iterations; ordinary masks take 3 to 7."""
_WORTH_A_THREAD = 10_000
"""Values below which handing work to a thread costs more than it saves."""


def solve(images: Images, removed: Removed, weights: tuple[float, float], noise: Noise | None = None) -> Images:
    """Fill each image on its own to `TOLERANCE`; kept pixels stay bit-equal, the input untouched."""
    check(images, removed, weights)
    pixels = images.detach().to("cpu", torch.float32).contiguous().numpy()
    gone = removed.detach().to("cpu").contiguous().numpy()
    filled = np.empty_like(pixels)
    iterations = np.zeros(pixels.shape[:2], np.int64)
    errors = np.zeros(pixels.shape[:2])
    count, channels, height, width = pixels.shape
    threads, pieces = _shares(count, channels, height, width)
    fields, rows, deviation = _arrays(noise, count)
    waiting = iter(pieces)

    def work() -> None:
        space = make_space(height, width, LIMIT)
        for first, last in waiting:
            fill_planes(
                pixels, gone, first, last, weights[1] / weights[0], TOLERANCE, space, fields, rows, deviation,
                filled, iterations, errors,
            )  # fmt: skip

    if threads == 1:
        work()
    else:
        for done in [_pool(getpid(), threads).submit(work) for _ in range(threads)]:
            done.result()
    refuse_failures(errors, iterations, (height, width))
    return torch.from_numpy(filled).to(images.device)


def _arrays(noise: Noise | None, count: int) -> tuple[NDArray[np.float32], NDArray[np.int64], float]:
    """What the kernel adds: it does so while a plane is at hand, as another pass over all images costs a third more."""
    if noise is None:
        return np.zeros((1, 1, 1, 1), np.float32), np.zeros(count, np.int64), 0.0
    return noise.fields.numpy(), noise.rows.numpy(), noise.deviation


def compile_now() -> None:
    """Compile, or load what was compiled before: some twenty seconds, once per machine; else the first fill pays."""
    solve(torch.zeros(1, 1, 4, 4), torch.eye(4, dtype=torch.bool)[None], (1.0, 0.5))


def check(images: Images, removed: Removed, weights: tuple[float, float]) -> None:
    if images.ndim != 4 or removed.shape != (len(images), *images.shape[2:]) or removed.dtype != torch.bool:
        raise ShapeError(
            f"images {tuple(images.shape)} and removed {tuple(removed.shape)} {removed.dtype} do not fit: "
            "give (n, c, h, w) and bool (n, h, w)"
        )
    direct, diagonal = weights
    if not (0 < direct < np.inf and 0 <= diagonal < np.inf):
        raise RangeError(f"weights {weights}: give (direct, diagonal), direct > 0, diagonal >= 0")


def refuse_failures(errors: NDArray[np.float64], iterations: NDArray[np.int64], size: tuple[int, int]) -> None:
    """Never a silent picture: `errors` (n, c) are estimates, or say what forbids a fill."""
    if ((errors >= 0) & (errors <= TOLERANCE)).all():
        return
    for image in np.flatnonzero((errors == NOTHING_KEPT).any(axis=1)):
        raise EverythingRemovedError(f"no pixel is kept in image {image} of the batch: there is nothing to fill from")
    for image in np.flatnonzero((errors == NOT_FINITE).any(axis=1)):
        raise RangeError(f"image {image} of the batch has kept pixels that are NaN or infinite: remove or repair them")
    for image in np.flatnonzero(~(errors <= TOLERANCE).all(axis=1)):
        raise SolverError(
            f"image {image} of the batch ({size[0]} × {size[1]}) was not filled: after {iterations[image].max()} "
            f"iterations the error is still about {errors[image].max():.1e}, above {TOLERANCE:.0e}; "
            "use roadworthy.imputers.direct.solve for it"
        )


def _shares(count: int, channels: int, height: int, width: int) -> tuple[int, list[tuple[int, int]]]:
    """How many threads, and which planes go together: at most as many threads as torch may use, in its workers one."""
    planes = count * channels
    threads = min(torch.get_num_threads(), planes)
    if threads <= 1 or planes * height * width < _WORTH_A_THREAD:
        return 1, [(0, planes)]
    # The channels of an image share its matrices; they part only where there are fewer images than threads.
    unit = channels if count >= threads else 1
    ends = np.linspace(0, planes // unit, min(8 * threads, planes // unit) + 1).astype(int) * unit
    return threads, list(pairwise(ends.tolist()))


@lru_cache(maxsize=4)
def _pool(process: int, threads: int) -> ThreadPoolExecutor:
    """Threads of its own for each process: after a fork those of the parent are gone."""
    return ThreadPoolExecutor(threads, thread_name_prefix="roadworthy-multigrid")
