"""Tensor expressions: what is computed, and the schedule that says how.

The names, arguments and printed text are those of TVM's ``te``. A sum of rows::

    n, m = te.var("n"), te.var("m")
    A = te.placeholder((n, m), name="A")
    k = te.reduce_axis((0, m), "k")
    B = te.compute((n,), lambda i: te.sum(A[i, k], axis=k), name="B")
    s = te.create_schedule(B.op)
    print(coulis.lower(s, [A, B], simple_mode=True))

Arithmetic on indices and sizes alone is index arithmetic, also where its result is a value: it is taken not to leave its
type, as in TVM, so that ``i * 1103515245 > 0`` holds for every ``i > 0``. Arithmetic that has an element of a tensor in
it wraps in its type; what is to wrap without one, as a hash of ``i``, is to be of an unsigned type,
``i.astype("uint32")``.
"""

import types as _types

from .._coulis import te as _te
from .expression import *
from .operation import *
from .reduction import *

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

__all__ = [name for name, thing in globals().items() if name[0] != "_" and not isinstance(thing, _types.ModuleType)]
