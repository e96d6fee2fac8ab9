"""Tensor expressions: what is computed, and the schedule that says how.

The names, arguments and printed text are those of TVM's ``te``. A sum of rows::

    n, m = te.var("n"), te.var("m")
    A = te.placeholder((n, m), name="A")
    k = te.reduce_axis((0, m), "k")
    B = te.compute((n,), lambda i: te.sum(A[i, k], axis=k), name="B")
    s = te.create_schedule(B.op)
    print(coulis.lower(s, [A, B], simple_mode=True))
"""

from .._coulis import te as _te
from .expression import (
    abs,
    add,
    all,
    any,
    cast,
    ceil,
    const,
    cos,
    div,
    erf,
    exp,
    exp2,
    floor,
    floordiv,
    floormod,
    fmod,
    if_then_else,
    indexdiv,
    indexmod,
    isfinite,
    isinf,
    isnan,
    likely,
    log,
    log2,
    max_value,
    maximum,
    min_value,
    minimum,
    multiply,
    nearbyint,
    popcount,
    power,
    round,
    rsqrt,
    select,
    sigmoid,
    sin,
    size_var,
    sqrt,
    subtract,
    tanh,
    trunc,
    truncdiv,
    truncmod,
    var,
)
from .operation import compute, create_schedule, placeholder, reduce_axis, thread_axis
from .reduction import comm_reducer, max, min, prod, sum

ExprOp = _te.ExprOp
IterVar = _te.IterVar
Operation = _te.Operation
PrimExpr = _te.PrimExpr
Range = _te.Range
Reduce = _te.Reduce
Schedule = _te.Schedule
Stage = _te.Stage
Tensor = _te.Tensor
TensorSlice = _te.TensorSlice

__all__ = [
    "ExprOp",
    "IterVar",
    "Operation",
    "PrimExpr",
    "Range",
    "Reduce",
    "Schedule",
    "Stage",
    "Tensor",
    "TensorSlice",
    "abs",
    "add",
    "all",
    "any",
    "cast",
    "ceil",
    "comm_reducer",
    "compute",
    "const",
    "cos",
    "create_schedule",
    "div",
    "erf",
    "exp",
    "exp2",
    "floor",
    "floordiv",
    "floormod",
    "fmod",
    "if_then_else",
    "indexdiv",
    "indexmod",
    "isfinite",
    "isinf",
    "isnan",
    "likely",
    "log",
    "log2",
    "max",
    "max_value",
    "maximum",
    "min",
    "min_value",
    "minimum",
    "multiply",
    "nearbyint",
    "placeholder",
    "popcount",
    "power",
    "prod",
    "reduce_axis",
    "round",
    "rsqrt",
    "select",
    "sigmoid",
    "sin",
    "size_var",
    "sqrt",
    "subtract",
    "sum",
    "tanh",
    "thread_axis",
    "trunc",
    "truncdiv",
    "truncmod",
    "var",
]
