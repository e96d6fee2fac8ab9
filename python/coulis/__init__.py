"""A reduction compiler: one read of the data, any set of statistics, at memory speed.

``coulis.reduce(x, ops, axis)`` takes arrays of every library that speaks DLPack or the array interfaces, copies
nothing, and gives arrays of the same library back. Each statistic of the catalogue is a function too:
``coulis.mean(x, axis)``.
"""

from . import _conveniences, te, tir
from ._conveniences import describe
from ._coulis import AxisError, Reducer, __version__, machine, ops, reduce
from .driver import lower

_FUNCTIONS = _conveniences.make()
globals().update(_FUNCTIONS)

__all__ = [
    "AxisError",
    "Reducer",
    "__version__",
    "describe",
    "lower",
    "machine",
    "ops",
    "reduce",
    "te",
    "tir",
    *_FUNCTIONS,
]
