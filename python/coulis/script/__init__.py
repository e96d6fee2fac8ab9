"""Kernels as Python functions, whose text is read and whose body is never executed.

``@T.prim_func`` takes the source text of a function, puts in the values that the function sees from outside, decides the
``if`` s that depend on them alone, and gives the text to the parser of coulis. Expressions of outer names alone are evaluated
once, where the function is defined; calls in them are made then, and never again::

    from coulis.script import tirx as T, tile as Tx

    N = 64

    @T.prim_func
    def double(A: T.Buffer((N,), "float32"), B: T.Buffer((N,), "float32")):
        for i in T.serial(N):
            B[i] = A[i] * T.float32(2)

    coulis.compile(double)(a, b)
"""

from . import _words
from ._function import PrimFunc
from ._layout import ComposeLayout, R, S, TileLayout, axis, laneid, m, tid_in_wg, tx, warpid, wgid, wid_in_wg
from ._module import IRModule, ModuleWords

tirx = _words.Vocabulary("T")
tir = tirx
tile = _words.Vocabulary("Tx")
ir = ModuleWords()

__all__ = [
    "ComposeLayout",
    "IRModule",
    "PrimFunc",
    "R",
    "S",
    "TileLayout",
    "axis",
    "ir",
    "laneid",
    "m",
    "tid_in_wg",
    "tile",
    "tir",
    "tirx",
    "tx",
    "warpid",
    "wgid",
    "wid_in_wg",
]
