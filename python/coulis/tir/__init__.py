"""Expressions by the names that TVM keeps in ``tir``; they are those of :mod:`coulis.te`."""

from ..te import (
    ExprOp,
    IterVar,
    PrimExpr,
    Reduce,
    abs,
    all,
    any,
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
    min_value,
    nearbyint,
    popcount,
    power,
    round,
    rsqrt,
    sigmoid,
    sin,
    sqrt,
    tanh,
    trunc,
    truncdiv,
    truncmod,
)
from ..te import cast as Cast
from ..te import maximum as Max
from ..te import minimum as Min
from ..te import select as Select
from ..te import size_var as SizeVar
from ..te import var as Var
from .._coulis import te as _te

IRModule = _te.IRModule

__all__ = [name for name in globals() if name[0] != "_"]
