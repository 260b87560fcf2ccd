"""The method of `multigrid.py` in plain torch, for images on a GPU and as its cross-check.

All images of a batch and their channels go through the same operations, each with its own step lengths and stopping
point: converged planes are frozen, so that a result does not depend on the rest of the batch.
"""

from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from roadworthy.core.types import Images, Removed
from roadworthy.imputers.noise import Noise
from roadworthy.imputers.solvers.multigrid import LIMIT, TOLERANCE, check, refuse_failures
from roadworthy.imputers.solvers.multigrid_kernels import (
    DAMPING,
    FLOOR,
    NOT_FINITE,
    NOTHING_KEPT,
    SAFETY,
    SINGULAR,
    sizes,
)

_DIRECTIONS = {"east": (0, 1), "south": (1, 0), "southeast": (1, 1), "southwest": (1, -1)}


class Links(NamedTuple):
    """A matrix with 9 entries per row, `(n, 1, h, w)` each; `absorbed` is the sum of a row."""

    absorbed: Tensor
    east: Tensor
    south: Tensor
    southeast: Tensor
    southwest: Tensor
    diagonal: Tensor


class Level(NamedTuple):
    links: Links
    inverse: Tensor


def solve(images: Images, removed: Removed, weights: tuple[float, float], noise: Noise | None = None) -> Images:
    """Fill each image independently to `TOLERANCE`; kept pixels stay bit-equal, the input is not modified."""
    check(images, removed, weights)
    if not removed.any():
        return images.detach().to(torch.float32, copy=True)
    mask, pixels = removed[:, None].detach().to(images.device), images.detach().float()
    kept = torch.where(mask, 0.0, pixels)
    count = (~mask).double().sum(3).sum(2)
    mean = (kept.double().sum(3).sum(2) / count).float()[..., None, None]
    centered = torch.where(mask | ~mean.isfinite(), 0.0, pixels - mean)
    unit = centered.abs().amax((2, 3)).double().clamp(min=1)
    exact = _pixels(mask.double(), weights[1] / weights[0])
    known = torch.where(mask, _flow(exact, centered.double()), 0.0)
    fill, errors, iterations = _converge(_levels(mask.float(), weights[1] / weights[0]), exact, known, unit)
    errors = torch.where(mean[..., 0, 0].isfinite(), errors, NOT_FINITE)
    errors = torch.where(count > 0, errors, NOTHING_KEPT).where(mask.any(3).any(2), 0.0)
    refuse_failures(errors.cpu().numpy(), iterations.cpu().numpy(), (images.shape[2], images.shape[3]))
    filled = torch.where(mask, fill + mean, pixels)
    return noise.added(filled, removed) if noise else filled


# ---- matrices ---------------------------------------------------------------------------------------------------


def _shift(x: Tensor, down: int, right: int) -> Tensor:
    """x[i + down, j + right], and 0 outside."""
    height, width = x.shape[-2:]
    wide = pad(x, (1, 1, 1, 1))
    return wide[..., 1 + down : 1 + down + height, 1 + right : 1 + right + width]


def _flow(links: Links, x: Tensor) -> Tensor:
    """Σ link·neighbor"""
    total = torch.zeros_like(x)
    for name, (down, right) in _DIRECTIONS.items():
        link = getattr(links, name)
        total = total + link * _shift(x, down, right) + _shift(link * x, -down, -right)
    return total


def _apply(links: Links, x: Tensor) -> Tensor:
    return links.diagonal * x - _flow(links, x)


def _with_diagonal(absorbed: Tensor, east: Tensor, south: Tensor, southeast: Tensor, southwest: Tensor) -> Links:
    links = Links(absorbed, east, south, southeast, southwest, absorbed)
    return links._replace(diagonal=absorbed + _flow(links, torch.ones_like(absorbed)))


def _pixels(mask: Tensor, ratio: float) -> Links:
    """Links between all neighbors, for the flow from kept pixels; the diagonal is nonzero only where removed."""
    ones = torch.ones_like(mask)
    weight = {"east": 1.0, "south": 1.0, "southeast": ratio, "southwest": ratio}
    every = [weight[name] * _shift(ones, *direction) for name, direction in _DIRECTIONS.items()]
    links = _with_diagonal(torch.zeros_like(mask), *every)
    return links._replace(diagonal=links.diagonal * mask)


def _masked(links: Links, mask: Tensor) -> Links:
    """Links between removed pixels; the rest of the diagonal flows to kept ones."""
    inside = {name: getattr(links, name) * mask * _shift(mask, *offset) for name, offset in _DIRECTIONS.items()}
    return links._replace(absorbed=(links.diagonal - mask * _flow(links, mask)).clamp(min=0), **inside)


def _levels(mask: Tensor, ratio: float) -> list[Level]:
    links = _masked(_pixels(mask, ratio), mask)
    levels = [Level(links, _reciprocal(links.diagonal))]
    for _ in pairwise(sizes(*mask.shape[-2:])):
        links = _transposed(_halve_rows(_transposed(_halve_rows(links))))
        size = _flow(Links(*map(torch.abs, links)), torch.ones_like(links.diagonal))
        levels.append(Level(links, _reciprocal(torch.maximum(links.diagonal, (links.diagonal + size) / 2))))
    bottom = levels[-1].links
    levels[-1] = Level(bottom, _dense_inverse(bottom))
    return levels


def _reciprocal(x: Tensor) -> Tensor:
    return torch.where(x > 0, 1 / x, 0.0)


def _halve_rows(fine: Links) -> Links:
    """PᵀAP with P along columns: a row of nodes takes half of the rows above and below it."""
    nodes = fine.diagonal.shape[-2] // 2 + 1
    above, here, below = (
        Links(*(pad(x, (0, 0, 1, 2))[..., o : o + 2 * nodes - 1 : 2, :] for x in fine)) for o in range(3)
    )
    crossed = sum(rows.southeast + _shift(rows.southwest, 0, 1) for rows in (above, here))
    return _with_diagonal(
        absorbed=here.absorbed + (above.absorbed + below.absorbed) / 2,
        east=here.east + (above.east + below.east) / 4 + crossed / 2,
        south=(here.south + below.south) / 2 - below.diagonal / 4,
        southeast=(here.southeast + below.southeast) / 2 + below.east / 4,
        southwest=(here.southwest + below.southwest) / 2 + _shift(below.east, 0, -1) / 4,
    )


def _transposed(links: Links) -> Links:
    absorbed, east, south, southeast, southwest, diagonal = (x.mT for x in links)
    # The southwest link of the upper right cell is now stored at its other end.
    return Links(absorbed, south, east, southeast, _shift(southwest, 1, -1), diagonal)


def _dense_inverse(links: Links) -> Tensor:
    """`(n, 1, cells, cells)` of the coarsest level; see `multigrid_kernels._invert_coarsest` on singular matrices."""
    height, width = links.diagonal.shape[-2:]
    unit = torch.eye(height * width, device=links.diagonal.device).reshape(1, -1, height, width)
    diagonal = torch.where(links.diagonal > 0, links.diagonal * (1 + SINGULAR), 1.0)
    columns = _apply(links._replace(diagonal=diagonal), unit).flatten(2).double()
    inverse: Tensor = torch.linalg.inv(columns)
    return inverse[:, None].float()


# ---- solution ---------------------------------------------------------------------------------------------------


def _cycle(levels: list[Level], residual: Tensor) -> Tensor:
    """One V-cycle, ≈ A⁻¹·residual."""
    links, inverse = levels[0]
    if len(levels) == 1:
        cells = (inverse * residual.flatten(2)[:, :, None]).sum(3)
        return cells.reshape(residual.shape)
    guess = DAMPING * inverse * residual
    below = _cycle(levels[1:], _restrict(residual - _apply(links, guess)))
    guess = guess + torch.where(inverse > 0, _interpolate(below, residual.shape[-2], residual.shape[-1]), 0.0)
    return guess + DAMPING * inverse * (residual - _apply(links, guess))


def _restrict(x: Tensor) -> Tensor:
    """Pᵀ, along columns and then along rows."""
    for _ in range(2):
        nodes = x.shape[-2] // 2 + 1
        above, here, below = (pad(x, (0, 0, 1, 2))[..., o : o + 2 * nodes - 1 : 2, :] for o in range(3))
        x = (here + (above + below) / 2).mT
    return x


def _interpolate(x: Tensor, height: int, width: int) -> Tensor:
    """P, along columns and then along rows."""
    for size in (height, width):
        between = (x + _shift(x, 1, 0)) / 2
        x = torch.stack((x, between), dim=-2).flatten(-3, -2)[..., :size, :].mT
    return x


def _dot(a: Tensor, b: Tensor) -> Tensor:
    """Inner products `(n, c)`, summed row by row: torch would split one long sum among its threads."""
    return (a * b).double().sum(3).sum(2)


def _converge(levels: list[Level], exact: Links, known: Tensor, unit: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Conjugate gradients as in `multigrid_kernels._converge`: fill, estimated errors and iterations, `(n, c)`."""
    fill = torch.zeros_like(known, dtype=torch.float32)
    direction = torch.zeros_like(fill)
    previous = torch.ones_like(unit)
    errors, iterations = torch.full_like(unit, torch.inf), torch.zeros_like(unit, dtype=torch.int64)
    active = torch.ones_like(unit, dtype=torch.bool)
    steps: list[tuple[Tensor, Tensor]] = []
    while len(steps) < LIMIT:
        residual = torch.where(exact.diagonal > 0, known - _apply(exact, fill.double()), 0.0).float()
        work = _cycle(levels, residual)
        largest = work.abs().amax((2, 3)).double()
        estimate = largest * SAFETY * _spread(steps) / unit if steps else torch.where(largest == 0, 0.0, torch.inf)
        iterations += active & (largest > 0)
        done = active & (estimate <= TOLERANCE)
        fill = torch.where(done[..., None, None], fill + work, fill)
        errors = torch.where(active & estimate.isfinite(), estimate, errors)
        active = active & ~done
        if not active.any():
            break
        product = _dot(residual, work)
        keep = product / previous if steps else torch.zeros_like(product)
        direction = work + keep[..., None, None].float() * direction
        length = product / _dot(direction, _apply(levels[0].links, direction))
        active = active & (length > 0)
        fill = torch.where(active[..., None, None], fill + length[..., None, None].float() * direction, fill)
        steps.append((length, keep))
        previous = product
    return fill, errors, iterations


def _spread(steps: list[tuple[Tensor, Tensor]]) -> Tensor:
    """(1 − λ)/λ, λ the smallest eigenvalue seen (Lanczos), by bisection with Sturm's sign count."""
    low, high = torch.zeros_like(steps[0][0]), torch.full_like(steps[0][0], 2.0)
    for _ in range(10):
        middle = (low + high) / 2
        pivot = 1 / steps[0][0] - middle
        below = pivot <= 0
        for (last, _), (length, keep) in pairwise(steps):
            pivot = 1 / length + keep / last - middle - keep / last**2 / pivot
            below = below | (pivot <= 0)
        low, high = torch.where(below, low, middle), torch.where(below, middle, high)
    rate = low.clamp(min=1e-3)
    return ((1 - rate) / rate).clamp(min=FLOOR)
