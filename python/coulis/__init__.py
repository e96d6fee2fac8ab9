"""A reduction compiler: one read of the data, any set of statistics, at memory speed.

``coulis.reduce(x, ops, axis)`` takes arrays of every library that speaks DLPack or the array interfaces, copies
nothing, and gives arrays of the same library back. Each statistic of the catalogue is a function too:
``coulis.mean(x, axis)``.
"""

import sys

from . import _conveniences, _normalizations, te, tir
from ._conveniences import describe
from ._coulis import AxisError, Reducer, __version__, machine, ops, reduce
from ._device import cpu, cuda, device
from ._normalizations import Normalization, normalization
from ._planning import Measured, Plan, bench, plan, reducer
from .driver import build, compile, lower

_FUNCTIONS = {**_conveniences.make(), **_normalizations.make()}
globals().update(_FUNCTIONS)

__all__ = [
    "AxisError",
    "Measured",
    "Normalization",
    "Plan",
    "Reducer",
    "__version__",
    "bench",
    "build",
    "compile",
    "cpu",
    "cuda",
    "describe",
    "device",
    "lower",
    "machine",
    "normalization",
    "ops",
    "plan",
    "reduce",
    "reducer",
    "te",
    "tir",
    *_FUNCTIONS,
]


def __getattr__(name):
    # These parts need NumPy, which the rest does without.
    if name in ("nd", "testing"):
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    # Python names what is near, where it knows of what.
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name, obj=sys.modules[__name__])
