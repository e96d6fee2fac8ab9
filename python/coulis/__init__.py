"""A reduction compiler: one read of the data, any set of statistics, at memory speed.

``coulis.reduce(x, ops, axis)`` takes arrays of every library that speaks DLPack or the array interfaces, copies
nothing, and gives arrays of the same library back.
"""

from . import te, tir
from ._coulis import AxisError, __version__, machine, ops
from .driver import lower

__all__ = ["AxisError", "__version__", "lower", "machine", "ops", "te", "tir"]
