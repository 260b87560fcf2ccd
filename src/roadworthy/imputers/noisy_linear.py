"""Noisy Linear imputation (paper, 5.2): every removed pixel is the weighted mean of its 8 neighbors, plus noise.

The equation lives here, its solvers behind one seam: `solve(images, removed, weights, noise) -> filled`.
"""

from dataclasses import dataclass
from typing import Protocol, final

from roadworthy.core.errors import EverythingRemovedError, RangeError
from roadworthy.core.random import Key
from roadworthy.core.types import Batch, Images, Removed
from roadworthy.imputers.noise import Noise
from roadworthy.imputers.solvers import multigrid, multigrid_torch


class Solver(Protocol):
    def __call__(
        self, images: Images, removed: Removed, weights: tuple[float, float], noise: Noise | None = None
    ) -> Images:
        """Solve for the removed pixels of each image on its own, then add noise to them; kept ones stay bit-equal."""


def solve_fast(images: Images, removed: Removed, weights: tuple[float, float], noise: Noise | None = None) -> Images:
    """Multigrid: compiled on the CPU, in torch elsewhere; `direct.solve` is the exact reference."""
    solve: Solver = multigrid.solve if images.device.type == "cpu" else multigrid_torch.solve
    return solve(images, removed, weights, noise)


@final
@dataclass(frozen=True)
class NoisyLinear:
    """Fill so that the hole's shape tells nothing: neighbors' weighted mean, solved to 1e-4, plus Gaussian noise.

    `noise` is its standard deviation, absolute in [0, 1] pixel space, drawn per pixel and channel, not clipped.
    `weights` are those of a direct and of a diagonal neighbor; at the border they are renormalized.
    """

    noise: float = 0.01
    weights: tuple[float, float] = (1 / 6, 1 / 12)
    solve: Solver = solve_fast

    def __post_init__(self) -> None:
        if self.noise < 0:
            raise RangeError(f"NoisyLinear(noise={self.noise}): a standard deviation is at least 0")
        adjacent, diagonal = self.weights
        if not (adjacent > 0 and diagonal >= 0):
            raise RangeError(f"NoisyLinear(weights={self.weights}): give (direct, diagonal), direct > 0, diagonal >= 0")

    def __call__(self, batch: Batch, removed: Removed, key: Key) -> Images:
        _check_some_kept(removed, batch)
        shape = tuple(batch.images.shape[1:])
        noise = Noise.drawn(key, batch.ids, shape, self.noise) if self.noise > 0 else None
        return self.solve(batch.images, removed, self.weights, noise)


def _check_some_kept(removed: Removed, batch: Batch) -> None:
    gone = removed.flatten(1).cpu().numpy().all(axis=1)
    if gone.any():
        ids = batch.ids.numpy()[gone].tolist()
        raise EverythingRemovedError(
            f"no pixel is kept in image {ids[0]} ({len(ids)} such in this batch): there is nothing to fill from; "
            "use a fraction below 1, or a fixed fill"
        )
