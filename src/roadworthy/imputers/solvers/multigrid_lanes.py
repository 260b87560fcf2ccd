"""Several numbers as one value in compiled code: arithmetic on a cell of so many planes costs as much as on one.

Arrays are flat, cell by cell: with eight lanes, `load(array, k)` is elements 8k to 8k + 7. Lanes never mix: what is in
a lane depends neither on the others nor on their number. numba compiles loops over numbers to such vectors by itself,
but not loops over every other cell.
"""

import operator
from collections.abc import Callable
from typing import Any, cast

from llvmlite import ir
from llvmlite.binding import get_host_cpu_features
from numba import extending, types
from numba.extending import models, register_model, type_callable

LANES = 16 if get_host_cpu_features().get("avx512f") else 8
"""As many as a vector of the processor holds."""


def intrinsic(function: Callable[..., Any]) -> Callable[..., Any]:
    """The first argument is numba's own."""
    return cast(Callable[..., Any], extending.intrinsic(function))


class _Lanes(types.Type):
    def __init__(self, element: Any, llvm: ir.Type):
        super().__init__(name=f"Lanes({element})")
        self.element, self.vector = element, ir.VectorType(llvm, LANES)


_OF = {
    types.float32: _Lanes(types.float32, ir.FloatType()),
    types.float64: _Lanes(types.float64, ir.DoubleType()),
}
"""element to a vector of them"""


@register_model(_Lanes)
class _Model(models.PrimitiveModel):
    def __init__(self, manager: Any, lanes: _Lanes):
        super().__init__(manager, lanes, lanes.vector)  # type: ignore[no-untyped-call]


def _address(context: Any, builder: Any, array: Any, value: Any, element: Any, vector: ir.Type) -> Any:
    data = context.make_array(array)(context, builder, value).data
    return builder.bitcast(builder.gep(data, [element]), vector.as_pointer())


def _first_of(builder: Any, cell: Any) -> Any:
    return builder.mul(cell, ir.Constant(cell.type, LANES))


@intrinsic
def load(typing: Any, array: Any, cell: Any) -> Any:
    lanes = _OF[array.dtype]

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        address = _address(context, builder, array, values[0], _first_of(builder, values[1]), lanes.vector)
        return builder.load(address, align=array.dtype.bitwidth // 8)

    return lanes(array, cell), generate


@intrinsic
def store(typing: Any, array: Any, cell: Any, lanes: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        address = _address(context, builder, array, values[0], _first_of(builder, values[1]), lanes.vector)
        builder.store(values[2], address, align=array.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(array, cell, lanes), generate


@intrinsic
def splat(typing: Any, number: Any) -> Any:
    """The same number in all lanes."""
    lanes = _OF[number]

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        empty, index = ir.Constant(lanes.vector, ir.Undefined), ir.Constant(ir.IntType(32), 0)
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), None)
        return builder.shuffle_vector(builder.insert_element(empty, values[0], index), empty, zeros)

    return lanes(number), generate


@intrinsic
def larger(typing: Any, a: Any, b: Any) -> Any:
    """The larger of each pair; b if a is NaN."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.select(builder.fcmp_ordered(">", *values), *values)

    return a(a, b), generate


@intrinsic
def magnitude(typing: Any, a: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        negative = builder.fneg(values[0])
        return builder.select(builder.fcmp_ordered(">", values[0], negative), values[0], negative)

    return a(a), generate


@intrinsic
def where_positive(typing: Any, condition: Any, value: Any) -> Any:
    """`value` in lanes whose condition is above 0, else 0."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        zero = ir.Constant(value.vector, [0.0] * LANES)
        return builder.select(builder.fcmp_ordered(">", values[0], zero), values[1], zero)

    return value(condition, value), generate


@intrinsic
def widened(typing: Any, a: Any) -> Any:
    """float32 to float64."""
    lanes = _OF[types.float64]

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.fpext(values[0], lanes.vector)

    return lanes(a), generate


@intrinsic
def turn(typing: Any, source: Any, start: Any, step: Any, target: Any, to: Any, step_to: Any) -> Any:
    """A transposed copy: element `start + i + j·step` becomes element `to + j + i·step_to`, i and j below `LANES`."""
    vector = _OF[source.dtype].vector

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        def address(array: int, i: int) -> Any:
            offset = builder.mul(values[array + 2], ir.Constant(values[array + 2].type, i))
            element = builder.add(values[array + 1], offset)
            return _address(context, builder, signature.args[array], values[array], element, vector)

        rows = [builder.load(address(0, i), align=4) for i in range(LANES)]
        for i, row in enumerate(_transposed(builder, rows)):
            builder.store(row, address(3, i), align=4)
        return context.get_dummy_value()

    return types.void(source, start, step, target, to, step_to), generate


def _transposed(builder: Any, rows: list[Any]) -> list[Any]:
    for size in (1 << bit for bit in range(LANES.bit_length() - 1)):  # swap the blocks beside the diagonal
        even = [i - size + LANES if i & size else i for i in range(LANES)]
        odd = [i + LANES if i & size else i + size for i in range(LANES)]
        orders = [ir.Constant(ir.VectorType(ir.IntType(32), LANES), order) for order in (even, odd)]
        rows = [builder.shuffle_vector(rows[i & ~size], rows[i | size], orders[bool(i & size)]) for i in range(LANES)]
    return rows


def _arithmetic(operation: Callable[..., Any], instruction: str) -> None:
    @type_callable(operation)
    def typed(context: Any) -> Any:
        return lambda a, b: a if isinstance(a, _Lanes) and a == b else None

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return getattr(builder, instruction)(*values, flags=("contract",))

    lower: Any = extending.lower_builtin
    lower(operation, _Lanes, _Lanes)(generate)


_arithmetic(operator.add, "fadd")
_arithmetic(operator.sub, "fsub")
_arithmetic(operator.mul, "fmul")
_arithmetic(operator.truediv, "fdiv")
