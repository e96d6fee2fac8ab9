"""Reductions: folds of expressions over reduce axes, and user-defined reducers."""

import inspect as _inspect

from .._coulis import te as _te
from .._functions import check as _check


def comm_reducer(fcombine, fidentity, name="reduce"):
    """A reducer from a function of two states and a function of dtypes.

    ``fcombine(x, y)`` gives the state of two states: an expression of two expressions, or a tuple of two tuples.
    ``fidentity(dtype, ...)`` takes the dtype of each source and gives the state that changes nothing. The reducer is
    taken to be associative and commutative, which is tried on random values. One that selects one of its two states with
    one condition for all parts, and where values are equal the left or the right one, as an argmax does, gives the same
    under every schedule; others of which the order of equal values matters are folded in ascending order, or refused.

    Values that are compared are to have an order. A NaN has none: ``x[1] >= y[1]`` is false on either side of it, so that
    an argmax by it is not associative where data hold NaN, and what it gives may hang on the schedule. One that gives NaN
    its place, here the first one found, is: ``left = te.any(te.isnan(x[1]), x[1] >= y[1])``.

    An identity is to lose against every element. An argmax of integers from ``te.min_value`` ties with the least one, so
    that its place in rows of nothing else is the identity's; values of a wider type have an identity below all of them.

    The result is called as ``te.sum`` is: ``reducer(expr, axis=k, where=None, init=None)``. With plain values in place
    of axes it folds its arguments.
    """
    _check(fcombine, f"the combiner of `{name}`", (2,))
    params = _names(fcombine)

    def over(expr, axis, where, init):
        sources = len(expr) if isinstance(expr, (list, tuple)) else 1
        _check(fidentity, f"the identity of `{name}`", (sources,))
        return _te.fold_by(name, params, fcombine, fidentity, expr, axis, where, init)

    return _reducer(name, over, fcombine, f"The fold by the reducer ``{name}``.")


def _names(fcombine):
    """What listings call the two states: the parameters' names, where these are names of one state each."""
    try:
        parameters = list(_inspect.signature(fcombine).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    names = tuple(p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD))
    return names[:2] if len(names) >= 2 else ("x", "y")


def _reducer(name, over_axes, of_two, meaning):
    """The two forms of a reducer: over axes, and of plain values."""

    def reducer(expr, *operands, **options):
        if not operands and "axis" not in options:
            raise TypeError(f"`{name}` takes the axes to fold over, axis=..., or a second value")
        if "axis" in options or _te.folds_axes(operands[0]):
            return _over(expr, *operands, **options)
        if options:
            raise TypeError(f"`{name}` of plain values takes no {', '.join(options)}")
        folded = expr
        for operand in operands:
            folded = of_two(folded, operand)
        return folded

    def _over(expr, axis, where=None, init=None):
        return over_axes(expr, axis, where, init)

    reducer.__name__ = reducer.__qualname__ = name
    reducer.__doc__ = (
        f"{meaning}\n\n"
        "``reducer(expr, axis=k)`` folds over one axis of ``te.reduce_axis`` or a list of them; ``where`` is a condition\n"
        "on the points that take part, ``init`` a constant or an element of a tensor to start from. It is the whole body\n"
        "of a compute.\n\n"
        "``reducer(a, b)`` folds two plain values, and is an expression."
    )
    return reducer


def _builtin(name, operation, meaning):
    return _reducer(
        name,
        lambda expr, axis, where, init: _te.fold(name, expr, axis, where, init),
        lambda a, b: _te.binary(operation, a, b),
        meaning,
    )


sum = _builtin("sum", "add", "The sum, in the dtype of its source; of bools, whether any is true.")
prod = _builtin("prod", "multiply", "The product, in the dtype of its source; of bools, whether all are true.")
min = _builtin("min", "min", "The smallest; NaN where one is.")
max = _builtin("max", "max", "The largest; NaN where one is.")
