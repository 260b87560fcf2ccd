"""The method of `multigrid.py` in plain torch, for images on a GPU and as its cross-check.

All images of a batch and their channels go through the same operations, each with its own step lengths. The host is
waited for once: after a fixed number of cycles, where each plane's error is estimated from what its iteration recorded.
Planes that need more cycles get them; the others are frozen, so that a result does not depend on the rest of the batch.

The pixel level needs no matrix: its links are constants, applied as a depthwise convolution. Coarse matrices are built
in `stencils.py`. Coarsening stops at `COARSEST` cells per side, where a dense inverse takes one launch.

Memory beside the input: at most `bytes_per_image` times the number of images, and `WORKING_MEMORY` in total, because
larger batches are solved in parts.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import conv2d, interpolate, pad

from roadworthy.core.types import Images, Removed
from roadworthy.imputers.noise import Noise
from roadworthy.imputers.solvers.multigrid import LIMIT, TOLERANCE, check, refuse_failures
from roadworthy.imputers.solvers.multigrid_kernels import NOT_FINITE, NOTHING_KEPT, judged
from roadworthy.imputers.solvers.multigrid_matrices import DAMPING
from roadworthy.imputers.solvers.stencils import Level, levels, times

CYCLES = 6
"""Between two looks at the errors; typical masks need 3 to 6."""
COARSEST = 9
"""Largest side of the coarsest level: a dense inverse of at most 81 × 81 values per image."""
RECURSIVE = 2
"""Iterations that update the residual; later it is computed anew in float64, as float32 loses small differences."""
WORKING_MEMORY = 2 << 30
"""Bytes; batches that would need more are solved in parts."""


def bytes_per_image(channels: int, height: int, width: int) -> int:
    """A bound: vectors of each channel, matrices, and the dense inverse in float64 with its factors."""
    return (height + 2) * (width + 2) * (52 * channels + 80) + 24 * min(COARSEST, max(height, width) // 2 + 1) ** 4


def solve(images: Images, removed: Removed, weights: tuple[float, float], noise: Noise | None = None) -> Images:
    """Fill each image independently to `TOLERANCE`; kept pixels stay bit-equal, the input is not modified."""
    check(images, removed, weights)
    if not images.numel():
        return images.detach().to(torch.float32, copy=True)
    together = max(1, WORKING_MEMORY // bytes_per_image(*images.shape[1:]))
    pixels, masks = images.detach(), removed.detach().to(images.device)
    split = zip(torch.split(pixels, together), torch.split(masks, together), strict=True)
    parts = [_solved(part.float(), mask, weights[1] / weights[0]) for part, mask in split]
    filled, errors, iterations = parts[0] if len(parts) == 1 else _joined(parts)
    refuse_failures(errors, iterations, (images.shape[2], images.shape[3]))
    return noise.added(filled, removed) if noise else filled


Array = NDArray[np.float64]
Solved = tuple[Images, Array, NDArray[np.int64]]


def _joined(parts: list[Solved]) -> Solved:
    filled, errors, iterations = zip(*parts, strict=True)
    return torch.cat(filled), np.concatenate(errors), np.concatenate(iterations)


def _solved(pixels: Images, removed: Removed, ratio: float) -> Solved:
    """Imputed images without noise; estimated errors (or codes) and iterations `(n, c)` on the host."""
    mask = removed[:, None]
    count = (~mask).sum((2, 3)).double()
    mean = (torch.where(mask, 0.0, pixels).double().sum(3).sum(2) / count).float()
    centered = torch.where(mask | ~mean.isfinite()[..., None, None], 0.0, pixels - mean[..., None, None])
    system = _system(mask, centered, ratio)
    run = _Run(system)
    # For data beyond [0, 1] errors are relative to the pixel range.
    facts = torch.stack([count.expand_as(mean), mean.double(), centered.abs().amax((2, 3)).double()])
    del centered
    while True:
        run.iterate(system, min(CYCLES, LIMIT - len(run.records)))
        (kept, means, largest), records = run.fetched(facts)
        errors, iterations = judged(records, np.maximum(largest, 1.0), TOLERANCE)
        if (errors <= TOLERANCE).all() or len(records) >= LIMIT:
            break
        run.freeze(errors <= TOLERANCE)
    errors = np.where(np.isfinite(means), errors, NOT_FINITE)
    errors = np.where(kept > 0, errors, NOTHING_KEPT)
    errors = np.where(kept < removed[0].numel(), errors, 0.0)
    return torch.where(mask, run.fill + mean[..., None, None], pixels), errors, iterations


# ── the system on the pixels ─────────────────────────────────────────────────────────────────────────────────────────


class _System(NamedTuple):
    kernels: Mapping[torch.dtype, Tensor]
    """The links of a pixel to its 8 neighbors, in float32 and float64."""
    gather: Tensor
    """float32: Pᵀ, what a node takes of its neighbors"""
    mask: Tensor
    """float32 `(n, 1, h, w)`, 1 where removed"""
    diagonals: Mapping[torch.dtype, Tensor]
    """Σ weights at removed pixels, 0 elsewhere; missing neighbors at the border have weight 0."""
    inverse: Tensor
    """DAMPING / diagonal"""
    known: Tensor
    """float32 `(n, c, h, w)`: the flow from kept pixels"""
    coarse: tuple[Level, ...]

    def times(self, x: Tensor) -> Tensor:
        """A·x, in the precision of `x`"""
        return (self.diagonals[x.dtype] * x).sub_(self.around(x)).mul_(self.mask)

    def around(self, x: Tensor) -> Tensor:
        """Σ weight·neighbor"""
        return _depthwise(x, self.kernels[x.dtype])


def _system(removed: Tensor, centered: Tensor, ratio: float) -> _System:
    mask = removed.float()
    kernel, gather = _kernel(ratio, 1.0, 0.0, mask), _kernel(0.25, 0.5, 1.0, mask)
    kernels = {torch.float32: kernel, torch.float64: kernel.double()}
    weights = _depthwise(torch.ones_like(mask[:1]), kernel)
    diagonal = weights * mask
    known = torch.where(removed, _depthwise(centered.double(), kernels[torch.float64]), 0.0).float()
    inverse = torch.where(removed, DAMPING / weights, 0.0)
    diagonals = {torch.float32: diagonal, torch.float64: diagonal.double()}
    return _System(kernels, gather, mask, diagonals, inverse, known, levels(mask, ratio, COARSEST))


def _kernel(corner: float, side: float, center: float, like: Tensor) -> Tensor:
    """`(1, 1, 3, 3)`, made on the device: nothing is moved there."""
    corners, sides, centers = (like.new_full((1, 1, 1, 1), value) for value in (corner, side, center))
    rows = (corners, sides, corners), (sides, centers, sides), (corners, sides, corners)
    return torch.cat([torch.cat(row, dim=3) for row in rows], dim=2)


def _depthwise(x: Tensor, kernel: Tensor, stride: int = 1) -> Tensor:
    """A convolution of every plane by itself: torch has a kernel for this that never rounds to TF32."""
    planes = x.reshape(1, -1, *x.shape[-2:])
    each = kernel.expand(planes.shape[1], 1, 3, 3)
    result = conv2d(planes, each, stride=stride, padding=1, groups=planes.shape[1])
    return result.reshape(*x.shape[:2], *result.shape[-2:])


# ── one V-cycle ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _cycle(system: _System, residual: Tensor) -> Tensor:
    """≈ A⁻¹·residual"""
    guess = system.inverse * residual
    # After one step of damped Jacobi from 0, diagonal·guess is DAMPING·residual.
    work = system.around(guess).add_(residual, alpha=1 - DAMPING).mul_(system.mask)
    below = _coarse_cycle(system.coarse, _restricted(work, system.gather), system.gather)
    guess.addcmul_(_interpolated(below, work), system.mask)
    flow = system.around(guess).add_(residual)
    return guess.mul_(1 - DAMPING).addcmul_(system.inverse, flow)


def _coarse_cycle(levels: tuple[Level, ...], residual: Tensor, gather: Tensor) -> Tensor:
    level = levels[0]
    if level.dense is not None:
        return torch.matmul(residual.flatten(2), level.dense).reshape(residual.shape)
    guess = level.inverse * residual
    work = residual - times(level, guess)
    below = _coarse_cycle(levels[1:], _restricted(work, gather), gather)
    guess.addcmul_(_interpolated(below, work), level.used)
    return guess.addcmul_(level.inverse, residual - times(level, guess))


def _restricted(x: Tensor, gather: Tensor) -> Tensor:
    """Pᵀ·x: every other pixel of every other row is a node; an even side gets one node beyond its end."""
    down, right = (1 - size % 2 for size in x.shape[-2:])
    return _depthwise(pad(x, (0, right, 0, down)) if down or right else x, gather, stride=2)


def _interpolated(x: Tensor, like: Tensor) -> Tensor:
    """P·x: linear between nodes."""
    height, width = (2 * size - 1 for size in x.shape[-2:])
    wide = interpolate(x, size=(height, width), mode="bilinear", align_corners=True)
    return wide[..., : like.shape[-2], : like.shape[-1]]


# ── conjugate gradients ──────────────────────────────────────────────────────────────────────────────────────────────


class _Run:
    """The state of conjugate gradients for all planes `(n, c)`, and what each iteration recorded of them."""

    def __init__(self, system: _System):
        self.residual = system.known.clone()
        self.fill, self.direction = torch.zeros_like(system.known), torch.zeros_like(system.known)
        self.previous = torch.ones_like(self.residual[..., 0, 0], dtype=torch.float64)
        self.active = torch.ones_like(self.previous)
        self.records: list[Tensor] = []

    def iterate(self, system: _System, cycles: int) -> None:
        for _ in range(cycles):
            work = _cycle(system, self.residual)
            largest, product = work.abs().amax((2, 3)).double(), _dot(self.residual, work)
            keep = product / self.previous if self.records else torch.zeros_like(product)
            self.direction = work.addcmul_(_planes(keep), self.direction)
            applied = system.times(self.direction)
            # 0/0 where nothing is left to solve: such a plane stays as it is.
            length = (self.active * product / _dot(self.direction, applied)).nan_to_num(0.0, 0.0, 0.0).clamp(min=0)
            self.fill.addcmul_(_planes(length), self.direction)
            self.previous = torch.where(product > 0, product, torch.ones_like(product))
            self.records.append(torch.stack([length, keep, largest]))
            if len(self.records) <= RECURSIVE:
                self.residual.addcmul_(_planes(length), applied, value=-1)
            else:
                self.residual = (system.known.double() - system.times(self.fill.double())).float().mul_(system.mask)

    def fetched(self, facts: Tensor) -> tuple[Array, Array]:
        """`facts` and all records `(iterations, 3, n, c)` on the host: the one time that it waits for the device."""
        together = torch.cat([facts, *self.records]).cpu().numpy()
        return together[: len(facts)], together[len(facts) :].reshape(-1, 3, *facts.shape[1:])

    def freeze(self, planes: NDArray[np.bool_]) -> None:
        self.active = torch.from_numpy(~planes).double().to(self.active.device)


def _planes(values: Tensor) -> Tensor:
    return values.float()[..., None, None]


def _dot(a: Tensor, b: Tensor) -> Tensor:
    """Inner products `(n, c)`, summed row by row: torch would split one long sum among its threads."""
    return (a * b).sum(3, dtype=torch.float64).sum(2)
