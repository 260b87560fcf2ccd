"""Noisy Linear imputation (the paper, section 5.2): the weighted mean of the 8 neighbors, plus noise.

Solvers of the linear system are functions `solve(images, removed, weights, noise) -> imputed images`.
"""

from dataclasses import dataclass
from typing import Protocol, final

from roadworthy.core.device import CPU, on_device
from roadworthy.core.errors import EverythingRemovedError, RangeError
from roadworthy.core.random import Key
from roadworthy.core.types import Batch, Images, Removed
from roadworthy.imputers.noise import Noise
from roadworthy.imputers.solvers import multigrid, multigrid_torch


class Solver(Protocol):
    def __call__(
        self, images: Images, removed: Removed, weights: tuple[float, float], noise: Noise | None = None
    ) -> Images:
        """Solve for the removed pixels of each image independently, then add noise; kept pixels stay bit-equal."""


def solve_fast(images: Images, removed: Removed, weights: tuple[float, float], noise: Noise | None = None) -> Images:
    """Multigrid, compiled on the CPU and in torch elsewhere; `direct.solve` is the exact reference."""
    solve: Solver = multigrid.solve if images.device.type == "cpu" else multigrid_torch.solve
    return solve(images, removed, weights, noise)


@on_device
@final
@dataclass(frozen=True)
class NoisyLinear:
    """The weighted mean of the neighbors, solved to about 1e-4, plus Gaussian noise (the paper, section 5.2).

    It reveals less of the mask than a fixed color does; docs/audit.md measures how much.

    `noise` is the standard deviation in [0, 1] pixel space; noise is drawn per pixel and channel and not clipped.
    `weights` are those of direct and diagonal neighbors; at the border they are renormalized.
    """

    noise: float = 0.01
    weights: tuple[float, float] = (1 / 6, 1 / 12)
    solve: Solver = solve_fast

    def __post_init__(self) -> None:
        if not 0 <= self.noise < float("inf"):
            raise RangeError(f"NoisyLinear(noise={self.noise}): a standard deviation must be 0 or more")
        direct, diagonal = self.weights
        if not (direct > 0 and diagonal >= 0):
            raise RangeError(f"NoisyLinear(weights={self.weights}): give (direct, diagonal), direct > 0, diagonal >= 0")

    def __call__(self, batch: Batch, removed: Removed, key: Key) -> Images:
        if batch.images.device == CPU:
            _check_some_kept(removed, batch)
            return self.solve(batch.images, removed, self.weights, self._noise(batch, key))
        try:  # elsewhere the solver notices too, without waiting for the device once more
            return self.solve(batch.images, removed, self.weights, self._noise(batch, key))
        except EverythingRemovedError:
            _check_some_kept(removed, batch)
            raise

    def draw(self, batch: Batch, key: Key) -> None:
        """Draw the noise for these images and move it to their device, before they are imputed."""
        self._noise(batch, key)

    def _noise(self, batch: Batch, key: Key) -> Noise | None:
        shape = tuple(batch.images.shape[1:])
        return Noise.drawn(key, batch.ids, shape, self.noise, batch.images.device) if self.noise > 0 else None


def _check_some_kept(removed: Removed, batch: Batch) -> None:
    empty = removed.flatten(1).cpu().numpy().all(axis=1)
    if empty.any():
        ids = batch.ids.numpy()[empty].tolist()
        raise EverythingRemovedError(
            f"no pixel is kept in image {ids[0]} ({len(ids)} such images in this batch): there is nothing to impute "
            "from; use a fraction below 1, or another imputer"
        )
