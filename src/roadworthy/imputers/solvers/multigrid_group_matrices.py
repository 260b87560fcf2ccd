"""The matrices of a group of planes: the pixels, and PᵀAP level by level down to a dense inverse."""

from typing import Any

from roadworthy.imputers.solvers.multigrid_group import HALF as HALF_START
from roadworthy.imputers.solvers.multigrid_group import HEIGHT, WIDTH, Group, cells, level
from roadworthy.imputers.solvers.multigrid_lanes import LANES, larger, load, magnitude, splat, store, where_positive
from roadworthy.imputers.solvers.multigrid_matrices import DAMPING, SINGULAR
from roadworthy.imputers.solvers.multigrid_memory import F4, F8, HALF, QUARTER, ZERO, Links, compiled


@compiled
def weigh(group: Group, ratio: float) -> None:
    """The sum of the weights of each pixel. Missing neighbors at the border have weight 0."""
    height, stride, first = level(group.table, 0)
    width = group.table[0, WIDTH]
    for i in range(height):
        vertical = (i > 0) + (i < height - 1)
        for j in range(width):
            horizontal = (j > 0) + (j < width - 1)
            total = F4(vertical + horizontal + ratio * (vertical * horizontal))
            k = first + i * stride + j
            group.total[k] = total
            group.rest[k] = F4(DAMPING) / total if total > 0 else ZERO


@compiled
def prepare(group: Group, ratio: float) -> None:
    """All matrices, from the mask."""
    _link_pixels(group, F4(ratio))
    for depth in range(1, len(group.table)):
        _halve_rows(group, depth)
        _halve_columns(group, depth)
        stride, first, last = cells(group.table, depth)
        _sum(group.links, stride, first, last)
        _invert_diagonal(group, depth)
    _invert_coarsest(group)


@compiled
def _link_pixels(group: Group, ratio: Any) -> None:
    """Links between removed pixels; the rest of the diagonal is the flow to kept ones."""
    mask, total, rest, inverse, links = group.mask, group.total, group.rest, group.inverse, group.links
    absorbed, diagonal, east, south = links.absorbed, links.diagonal, links.east, links.south
    southeast, southwest = links.southeast, links.southwest
    s, first, last = cells(group.table, 0)
    weight, zero = splat(ratio), splat(ZERO)
    for k in range(first, last):
        here, right, below = load(mask, k), load(mask, k + 1), load(mask, k + s)
        left_below, right_below = load(mask, k + s - 1), load(mask, k + s + 1)
        crossed = (load(mask, k - s - 1) + load(mask, k - s + 1)) + (left_below + right_below)
        direct = (load(mask, k - s) + below) + (load(mask, k - 1) + right)
        whole = splat(total[k])
        store(inverse, k, splat(rest[k]) * here)
        store(east, k, here * right)
        store(south, k, here * below)
        store(southeast, k, weight * here * right_below)
        store(southwest, k, weight * here * left_below)
        store(diagonal, k, whole * here)
        store(absorbed, k, here * larger(whole - (direct + weight * crossed), zero))


@compiled
def _halve_rows(group: Group, depth: int) -> None:
    """PᵀAP of the next finer level with P along columns."""
    _, stride, first = level(group.table, depth - 1)
    height, width = group.table[depth, HEIGHT], group.table[depth - 1, WIDTH]
    start = group.table[depth, HALF_START] + stride + 1
    _halve(group.links, group.half, stride, first, 2 * stride, 1, start, stride, height, width)
    _sum(group.half, stride, start, start + height * stride)


@compiled
def _halve_columns(group: Group, depth: int) -> None:
    """The other half of PᵀAP, with P along rows."""
    stride = group.table[depth - 1, WIDTH] + 2
    first = group.table[depth, HALF_START] + stride + 1
    height, stride_to, start = level(group.table, depth)
    width = group.table[depth, WIDTH]
    _halve(_turned(group.half), _turned(group.links), 1, first, stride, 2, start, stride_to, height, width)


@compiled
def _turned(links: Links) -> Links:
    """With rows as columns: what leads to the right leads down."""
    return Links(links.absorbed, links.south, links.east, links.southeast, links.southwest, links.diagonal)


@compiled
def _halve(
    fine: Links, coarse: Links, step: int, first: int, down: int, right: int, start: int, stride: int, height: int,
    width: int,
) -> None:  # fmt: skip
    """Every other row becomes a row of nodes and takes half of the rows above and below it.

    Cell (i, j) of `coarse` is `start + i·stride + j`, its node in `fine` is `first + i·down + j·right`, with `step`
    to the next row. The link from its right neighbor to the one below it is stored by one of them: at k + 1.
    """
    east, south, southeast, southwest = fine.east, fine.south, fine.southeast, fine.southwest
    diagonal, absorbed = fine.diagonal, fine.absorbed
    half, quarter = splat(HALF), splat(QUARTER)
    for i in range(height):
        for j in range(width):
            k, out = first + i * down + j * right, start + i * stride + j
            falling, rising = load(southeast, k), load(southwest, k + 1)
            crossed = (load(southeast, k - step) + load(southwest, k - step + 1)) + (falling + rising)
            along = load(east, k) + quarter * (load(east, k - step) + load(east, k + step))
            below = quarter * load(east, k + step)
            passing = half * (load(south, k) + load(south, k + step)) - quarter * load(diagonal, k + step)
            flow = load(absorbed, k) + half * (load(absorbed, k - step) + load(absorbed, k + step))
            store(coarse.east, out, along + half * crossed)
            store(coarse.south, out, passing)
            store(coarse.southeast, out, half * (falling + load(southeast, k + step)) + below)
            store(coarse.southwest, out + 1, half * (rising + load(southwest, k + step + 1)) + below)
            store(coarse.absorbed, out, flow)


@compiled
def _sum(links: Links, s: int, first: int, last: int) -> None:
    """diagonal = absorbed + all links: no cancellation, so that float32 keeps the matrix positive definite."""
    east, south, southeast, southwest = links.east, links.south, links.southeast, links.southwest
    absorbed, diagonal = links.absorbed, links.diagonal
    for k in range(first, last):
        direct = (load(east, k - 1) + load(east, k)) + (load(south, k - s) + load(south, k))
        falling = load(southeast, k - s - 1) + load(southeast, k)
        rising = load(southwest, k - s + 1) + load(southwest, k)
        store(diagonal, k, (load(absorbed, k) + direct) + (falling + rising))


@compiled
def _invert_diagonal(group: Group, depth: int) -> None:
    """Damping / max(diagonal, half the row's absolute sum): where links are negative, plain Jacobi would diverge."""
    links, inverse = group.links, group.inverse
    east, south, southeast, southwest = links.east, links.south, links.southeast, links.southwest
    s, first, last = cells(group.table, depth)
    half, damping = splat(HALF), splat(F4(DAMPING))
    for k in range(first, last):
        along = magnitude(load(east, k - 1)) + magnitude(load(east, k))
        across = magnitude(load(south, k - s)) + magnitude(load(south, k))
        falling = magnitude(load(southeast, k - s - 1)) + magnitude(load(southeast, k))
        rising = magnitude(load(southwest, k - s + 1)) + magnitude(load(southwest, k))
        diagonal = load(links.diagonal, k)
        bound = half * (diagonal + (along + across) + (falling + rising))
        bound = larger(bound, diagonal)
        store(inverse, k, where_positive(bound, damping / bound))


@compiled
def _invert_coarsest(group: Group) -> None:
    """Gauss-Jordan. Nodes that share all their pixels make the matrix singular; a small diagonal shift fixes it."""
    links, dense, bottom, table = group.links, group.dense, group.bottom, group.table
    depth = len(table) - 1
    height, stride, first = level(table, depth)
    width = table[depth, WIDTH]
    n = height * width
    dense[:] = 0.0
    for cell in range(n):
        i, j = cell // width, cell % width
        k = first + i * stride + j
        _copy(links.diagonal, k, dense, cell * n + cell, F8(1 + SINGULAR))
        if j + 1 < width:
            _link(links.east, k, dense, cell, cell + 1, n)
        if i + 1 < height:
            _link(links.south, k, dense, cell, cell + width, n)
            if j + 1 < width:
                _link(links.southeast, k, dense, cell, cell + width + 1, n)
            if j > 0:
                _link(links.southwest, k, dense, cell, cell + width - 1, n)
    one, zero = splat(F8(1)), splat(F8(0))
    for pivot in range(n):
        scale = load(dense, pivot * n + pivot)
        scale = where_positive(scale, one / scale)
        store(dense, pivot * n + pivot, one)
        for column in range(n):
            store(dense, pivot * n + column, scale * load(dense, pivot * n + column))
        for row in range(n):
            if row != pivot:
                factor = load(dense, row * n + pivot)
                store(dense, row * n + pivot, zero)
                for column in range(n):
                    value = load(dense, row * n + column) - factor * load(dense, pivot * n + column)
                    store(dense, row * n + column, value)
    for entry in range(len(bottom)):
        bottom[entry] = F4(dense[entry])


@compiled
def _link(source: Any, k: int, dense: Any, a: int, b: int, n: int) -> None:
    _copy(source, k, dense, a * n + b, F8(-1))
    _copy(source, k, dense, b * n + a, F8(-1))


@compiled
def _copy(source: Any, k: int, dense: Any, entry: int, factor: Any) -> None:
    for lane in range(LANES):
        dense[LANES * entry + lane] = factor * F8(source[LANES * k + lane])
