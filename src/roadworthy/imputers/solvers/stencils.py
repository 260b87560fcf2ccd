"""Coarse matrices of `multigrid_torch.py`: 9 entries per row, PᵀAP level by level, for a whole batch at once."""

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from roadworthy.imputers.solvers.multigrid_matrices import DAMPING, SINGULAR

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
    diagonal: Tensor
    inverse: Tensor
    """DAMPING over a bound of the row; 0 for nodes without unknowns"""
    used: Tensor
    """1 for nodes with unknowns"""
    links: tuple[Tensor, ...]
    """in the order of `_DIRECTIONS`, with a border of zeros"""
    dense: Tensor | None
    """`(n, cells, cells)` on the coarsest level: the inverse"""


def levels(mask: Tensor, ratio: float, coarsest: int) -> tuple[Level, ...]:
    """The matrices below the pixels, whose unknowns are `mask` `(n, 1, h, w)`; the last has sides up to `coarsest`."""
    fine = _pixels(mask, ratio)
    result: list[Level] = []
    while not result or max(fine.diagonal.shape[-2:]) > coarsest:
        fine = _transposed(_halve_rows(_transposed(_halve_rows(fine))))
        result.append(_level(fine, last=max(fine.diagonal.shape[-2:]) <= coarsest))
    return tuple(result)


def times(level: Level, x: Tensor) -> Tensor:
    """A·x for `x` `(n, c, h, w)`."""
    height, width = x.shape[-2:]
    wide, result = pad(x, (1, 1, 1, 1)), level.diagonal * x
    for link, (down, right) in zip(level.links, _DIRECTIONS.values(), strict=True):
        here, there = link[..., 1 : 1 + height, 1 : 1 + width], link[..., 1 - down :, 1 - right :]
        ahead, behind = wide[..., 1 + down :, 1 + right :], wide[..., 1 - down :, 1 - right :]
        result.addcmul_(here, ahead[..., :height, :width], value=-1)
        result.addcmul_(there[..., :height, :width], behind[..., :height, :width], value=-1)
    return result


def _level(links: Links, last: bool) -> Level:
    size = _sums(Links(*map(torch.abs, links)))
    # Where links are negative, plain Jacobi would diverge: at least half the row's absolute sum.
    bound = torch.maximum(links.diagonal, (links.diagonal + size) / 2)
    used = bound > 0
    return Level(
        links.diagonal,
        torch.where(used, DAMPING / bound, 0.0),
        used.float(),
        tuple(pad(getattr(links, name), (1, 1, 1, 1)) for name in _DIRECTIONS),
        _dense_inverse(links) if last else None,
    )


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


def _sums(links: Links) -> Tensor:
    """Σ links of each row"""
    total = torch.zeros_like(links.diagonal)
    for name, (down, right) in _DIRECTIONS.items():
        link = getattr(links, name)
        total = total.add_(link).add_(_shift(link, -down, -right))
    return total


def _with_diagonal(absorbed: Tensor, east: Tensor, south: Tensor, southeast: Tensor, southwest: Tensor) -> Links:
    """diagonal = absorbed + all links: no cancellation, so that float32 keeps the matrix positive definite."""
    links = Links(absorbed, east, south, southeast, southwest, absorbed)
    return links._replace(diagonal=absorbed + _sums(links))


def _pixels(mask: Tensor, ratio: float) -> Links:
    """Links between removed pixels; the rest of the diagonal, Σ weights, flows to kept ones."""
    ones = torch.ones_like(mask[:1])
    weight = {"east": 1.0, "south": 1.0, "southeast": ratio, "southwest": ratio}
    every = Links(ones, **_scaled(weight, ones, ones), diagonal=ones)
    diagonal = _sums(every) * mask
    links = Links(absorbed=mask, diagonal=diagonal, **_scaled(weight, mask, mask))
    return links._replace(absorbed=(diagonal - _flow(links, mask)).clamp(min=0))


def _scaled(weight: Mapping[str, float], here: Tensor, there: Tensor) -> dict[str, Tensor]:
    return {name: weight[name] * here * _shift(there, *direction) for name, direction in _DIRECTIONS.items()}


def _halve_rows(fine: Links) -> Links:
    """PᵀAP with P along columns: a row of nodes takes half of the rows above and below it."""
    nodes = fine.diagonal.shape[-2] // 2 + 1
    padded = Links(*(pad(x, (0, 0, 1, 2)) for x in fine))
    above, here, below = (Links(*(x[..., o : o + 2 * nodes - 1 : 2, :] for x in padded)) for o in range(3))
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
    """`(n, cells, cells)`; see `multigrid_matrices._invert_coarsest` on singular matrices."""
    height, width = links.diagonal.shape[-2:]
    unit = torch.eye(height * width, device=links.diagonal.device).reshape(1, -1, height, width)
    diagonal = torch.where(links.diagonal > 0, links.diagonal * (1 + SINGULAR), 1.0)
    columns = (diagonal * unit - _flow(links, unit)).flatten(2).double()
    inverse: Tensor = torch.linalg.inv_ex(columns).inverse  # inv() would wait for the device to check its result
    return inverse.float()
