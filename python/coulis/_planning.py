"""Plans to look at, edit and reuse; measurements; user-defined reducers."""

from __future__ import annotations

import inspect
import keyword
import math
import numbers
from collections import namedtuple
from typing import Any

import numpy as np

from ._coulis import Reducer, bench_of, described, described_beside, plan_of
from ._coulis import reduce as _reduce
from ._functions import check
from ._normalizations import mapped

# What `reduce` takes by name only.
_OPTIONS = {name for name, p in inspect.signature(_reduce).parameters.items() if p.kind is p.KEYWORD_ONLY}

Measured = namedtuple("Measured", "seconds median bytes gb_per_second floor plan device verified")
Measured.__doc__ = """What `bench` measured.

`seconds` of the best launch and of the one in the `median`; `bytes` that had to move and the rate that is;
`floor`, the seconds to read as many bytes; the name of the `plan` and the `device`; whether the results were
`verified` (None where that was not asked for).
"""


def _known(options, what):
    """Refuses names of options that `reduce` does not have."""
    unknown = sorted(set(options) - _OPTIONS)
    if unknown:
        raise TypeError(f"{what} takes no {', '.join(unknown)}; legal are {', '.join(sorted(_OPTIONS))}")


def _is_moved_by_a_pickle(one):
    """Whether elements have other strides once they are pickled, for which the plan would not be."""
    return type(one) is np.ndarray and not one.dtype.hasobject and not (one.flags.c_contiguous or one.flags.f_contiguous)


class _Strided:
    """An array that is pickled with its strides."""

    def __init__(self, array):
        self.array = array

    def __reduce__(self):
        array = self.array
        # Of a dimension that one element is repeated along, that element.
        elements = array[tuple(slice(None if step else 1) for step in array.strides)]
        return _with_strides, (np.ascontiguousarray(elements), array.shape, array.strides)


def _with_strides(elements, shape, strides):
    """The array of these elements that has those strides; what lies between them is 0."""
    reach = [(length - 1) * step for length, step in zip(shape, strides)]
    first = -sum(min(distance, 0) for distance in reach)
    last = sum(max(distance, 0) for distance in reach)
    memory = np.zeros(first + last + elements.dtype.itemsize, np.uint8)
    np.ndarray(elements.shape, elements.dtype, memory, first, strides)[...] = elements
    return np.ndarray(shape, elements.dtype, memory, first, strides)


class Plan:
    """How a reduction or a normalization is run: a schedule, as text that can be edited.

    `coulis.plan` makes it. Called with an array, it reduces or maps that array by itself; `coulis.reduce` takes it as `plan=`,
    and so does the function of the normalization.

    Attributes
    ----------
    name : str
        Name of the strategy.
    trace : str
        The schedule, a primitive a line. Setting it to other text edits the plan.
    """

    def __init__(self, x, x_dtype, ops, axis, options):
        # Of an array, what it is like is kept, and not the array.
        self._of, self._ops, self._axis, self._options = described(x, x_dtype), ops, axis, options
        self._mapped, self._beside = mapped(ops, options), []
        if self._mapped is None:
            _known(options, "a plan")
        else:
            given = [(name, one) for name, one in self._mapped.arrays.items() if one is not None]
            self._beside = [(name, described_beside(one, name, x_dtype)) for name, one in given]
        found = self._found(False)
        self.name, self._trace = found["name"], found["trace"]
        self._planned = self._trace

    @property
    def trace(self):
        """The schedule, a primitive a line. Setting it to other text edits the plan."""
        return self._trace

    @trace.setter
    def trace(self, text):
        if not isinstance(text, str):
            raise TypeError(f"`trace` is to be the text of a schedule, got an object of type `{type(text).__name__}`")
        self._trace = text

    def _found(self, wants_source):
        options = dict(self._options if self._mapped is None else self._mapped.options)
        if getattr(self, "_trace", None) != getattr(self, "_planned", None):
            options["plan"] = self._trace
        if self._mapped is None:
            return plan_of(self._of, self._ops, self._axis, options, wants_source, None)
        map = (self._beside, self._mapped.parameters)
        return plan_of(self._of, self._mapped.of, self._axis, options, wants_source, map)

    @property
    def source(self):
        """The source that is compiled; None where nothing is, since there is no compiler."""
        return self._found(True)["source"]

    def explain(self):
        """Why this plan: each strategy with what it wanted and found, and the bytes and seconds that are predicted."""
        found = self._found(False)
        lines = [*found["reasons"], f"bytes    {found['bytes']}"]
        if found["seconds"] is not None:
            lines.append(f"seconds  {found['seconds']:.3g} at the stream rate")
        return "\n".join(lines)

    def __call__(self, x, **options):
        """Reduces or maps an array of the shape that was planned for; options but `plan` may be other than those that were planned."""
        kept = sorted({"ops", "axis", "plan"} & set(options))
        if kept:
            raise TypeError(f"a plan keeps its `{kept[0]}`; make one for the other with `coulis.plan`")
        if self._mapped is not None:
            return self._mapped(x, self._axis, {**options, "plan": self._trace})
        _known(options, "a call of a plan")
        return _reduce(x, self._ops, self._axis, **{**self._options, **options, "plan": self._trace})

    def __getstate__(self):
        kept = {name: _Strided(one) if _is_moved_by_a_pickle(one) else one for name, one in self._options.items()}
        return {**self.__dict__, "_options": kept, "_mapped": None}

    def __setstate__(self, state):
        self.__dict__.update(state)
        self._options = {name: one.array if isinstance(one, _Strided) else one for name, one in self._options.items()}
        self._mapped = mapped(self._ops, self._options)

    def __repr__(self):
        return f"<coulis.Plan {self.name} of {self._ops} over {self._axis}>"


def plan(x_or_shape: Any, ops: Any, axis: Any = None, *, x_dtype: Any = "float32", **options: Any) -> Plan:
    """How `coulis.reduce`, or a normalization, would run a call, without running it.

    Parameters
    ----------
    x_or_shape : array, tuple of arrays, or tuple of int
        What `coulis.reduce` takes; or the shape of a row-major array of `x_dtype`, and for `dot` and `wmean` of both.
    ops, axis
        Those of `coulis.reduce`; or a normalization, `"softmax"` or one that `coulis.normalization` made, and the axes of its rows,
        which are all by default here.
    x_dtype : dtype
        Type of the elements, where a shape is given.
    **options
        Those of `coulis.reduce`, or of the normalization, whose arrays may be shapes as well. The plan keeps them as they are
        given, masks and other arrays too, and calls of the plan have them unless they give their own. An array is planned for as
        one that begins where the widest access may; calls of others may be planned with narrower ones.

    Returns
    -------
    Plan

    Examples
    --------
    >>> import coulis
    >>> p = coulis.plan((1000, 1000), "sum", axis=1)
    >>> "s[" in p.trace
    True
    >>> "s[" in coulis.plan((64, 1000), "layer_norm", axis=1, weight=(1000,)).trace
    True
    """
    return Plan(x_or_shape, x_dtype, ops, axis, options)


def bench(
    x_or_shape: Any,
    ops: Any,
    axis: Any = None,
    *,
    x_dtype: Any = "float32",
    device: Any = None,
    seconds: float = 0.5,
    verify: bool = True,
) -> Measured:
    """Times a reduction of a made-up array, in turn with plain reads of as many bytes.

    Parameters
    ----------
    x_or_shape : array or tuple of int
        The shape (and type) that is measured; elements are made up.
    ops : str, or list of str
        Statistics of the catalogue that read one array.
    axis, device
        Those of `coulis.reduce`.
    x_dtype : dtype
        Type of the elements, where a shape is given.
    seconds : float
        About how long to measure.
    verify : bool
        Whether results are compared with an exact reference.

    Returns
    -------
    Measured
    """
    if not isinstance(seconds, numbers.Real) or not 0 < seconds < math.inf:
        raise ValueError(f"`seconds` is to be a number above 0, got {seconds!r}")
    found = bench_of(described(x_or_shape, x_dtype), ops, axis, device, float(seconds), verify)
    return Measured(**{field: found[field] for field in Measured._fields})


def reducer(
    *,
    combine: Any,
    identity: Any,
    lift: Any = None,
    finish: Any = None,
    dtypes: Any = None,
    commutative: bool = True,
    name: str,
) -> Reducer:
    """A user-defined reducer, which `coulis.reduce` takes in place of a name, with others in the same read.

    The functions are called with symbolic values, once for the element types of an input; `coulis.te` has functions of
    such values (`te.exp`, `te.maximum`, `te.if_then_else`).

    Parameters
    ----------
    combine : function of two states
        The state of both together. It is to be associative; that is tried on random values, and a counterexample
        raises ValueError: here where `dtypes` are given, else at the first call for the types of its arrays, since a function
        such as ``a ^ b`` has no meaning for others.
    identity : number, or tuple of numbers
        The state that changes nothing when it is combined. A tuple has a field each; states are then tuples.
    lift : function of an element, or of an element and its position
        The state of one element; by default the element itself. Of several arrays it takes an element of each. Parameters with
        a default keep it, so that the position goes only to one without. Elements come widened to the type that sums of them have
        (float16 as float32, int8 as int64). The fields have the types that it gives, and so have results: those of float16
        are float32 with a lift that does not convert them, float16 without one. Sums of narrow floats are held in float32
        in any case.
    finish : function of a state
        The result, or a tuple of results; by default the state.
    dtypes : list of dtypes, or None
        Types of the elements, one an input; by default those of the arrays.
    commutative : bool
        Whether states may be combined in any order.
    name : str
        Its name in results and messages.

    Returns
    -------
    Reducer

    Examples
    --------
    >>> import coulis, numpy as np
    >>> xor = coulis.reducer(combine=lambda a, b: a ^ b, identity=0, name="xor")
    >>> int(coulis.reduce(np.array([1, 2, 7]), xor))
    4
    """
    if not isinstance(name, str):
        raise TypeError(f"`name` is to be a text, got an object of type `{type(name).__name__}`")
    if not name.isidentifier() or keyword.iskeyword(name) or name.startswith("_"):
        raise ValueError(f"`{name}` names no field of a result; legal are identifiers that are no keyword and begin with a letter")
    if dtypes is not None and not isinstance(dtypes, (list, tuple)):
        dtypes = [dtypes]
    # Without types it is the arrays of a call that say how many elements there are.
    of_lift = (1, 2, 3) if dtypes is None else (len(dtypes), len(dtypes) + 1)
    for what, function, legal in [("combine", combine, (2,)), ("lift", lift, of_lift), ("finish", finish, (1,))]:
        if function is not None or what == "combine":
            check(function, f"`{what}` of reducer `{name}`", legal)
    return Reducer(name, combine, identity, lift, finish, dtypes, commutative)
