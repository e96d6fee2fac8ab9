"""Maps that read each element with the statistics of its row: softmax and the norms.

A row is read from memory once: its statistics are finished and its elements mapped while it is in a cache.
"""

from __future__ import annotations

import inspect
import operator
from typing import Any

from ._coulis import OwnConsumer, ops
from ._coulis import consume as _consume

#: What a call of a consumer takes by name in addition to arrays.
_OPTIONS = frozenset(name for name, p in inspect.signature(_consume).parameters.items() if p.kind is p.KEYWORD_ONLY)
#: Those of consumers that compute no variance.
_WITHOUT_DDOF = _OPTIONS - {"ddof"}


def consume(x, op, axis, beside=None, parameters=None, legal=_WITHOUT_DDOF, **options):
    """The map of that name, or a user-defined one. Unknown options are refused in the words of the caller."""
    unknown = options.keys() - legal
    if unknown:
        name = op if isinstance(op, str) else "a consumer"
        raise TypeError(
            f"{name}() got an unexpected keyword argument {min(unknown)!r}; its options are {', '.join(sorted(legal))}"
        )
    return _consume(x, op, axis, beside, parameters, **options)


def softmax(x, axis=-1, **options):
    """Exponentials of the elements over the sum of the row's exponentials, without overflow.

    Parameters
    ----------
    x : array
        Any array that `coulis.reduce` takes.
    axis : int, tuple of int, or None
        The axes of a row; None is all of them.
    **options
        `dtype`, `acc_dtype`, `nan`, `alpha`, `beta`, `out`, `device`, `stream`, `plan`, as in `coulis.reduce`.

    Returns
    -------
    array
        Of the library, shape and type of `x`; float64 for integers.

    Examples
    --------
    >>> import coulis, numpy as np
    >>> coulis.softmax(np.array([[0.0, 0.0, -np.inf]]))
    array([[0.5, 0.5, 0. ]])
    """
    return consume(x, "softmax", axis, **options)


def log_softmax(x, axis=-1, **options):
    """Elements less the logarithm of the sum of the row's exponentials, without overflow.

    Parameters
    ----------
    x : array
        Any array that `coulis.reduce` takes.
    axis : int, tuple of int, or None
        The axes of a row; None is all of them.
    **options
        As in `coulis.softmax`.

    Returns
    -------
    array
        Of the library, shape and type of `x`; float64 for integers.

    Examples
    --------
    >>> import coulis, numpy as np
    >>> coulis.log_softmax(np.array([1000.0, -1000.0]))
    array([    0., -2000.])
    """
    return consume(x, "log_softmax", axis, **options)


def layer_norm(x, axis=-1, weight=None, bias=None, eps=1e-5, *, normalized_shape=None, **options):
    """``(x - mean) / sqrt(var + eps) * weight + bias`` of each row.

    Parameters
    ----------
    x : array
        Any array that `coulis.reduce` takes.
    axis : int, tuple of int, or None
        The axes of a row; None is all of them.
    weight, bias : array, or None
        Of the shape of a row.
    eps : float
        Added under the root.
    normalized_shape : tuple of int
        The lengths of the last axes, which a row then has, in place of `axis`.
    **options
        As in `coulis.softmax`; and `ddof`.

    Returns
    -------
    array
        Of the library, shape and type of `x`; float64 for integers.

    Examples
    --------
    >>> import coulis, numpy as np
    >>> coulis.layer_norm(np.array([[1.0, 3.0]]), weight=np.array([10.0, 100.0]), eps=0)
    array([[-10., 100.]])
    """
    axis = _of_shape(x, axis, normalized_shape)
    return consume(x, "layer_norm", axis, {"weight": weight, "bias": bias}, {"eps": eps}, _OPTIONS, **options)


def rms_norm(x, axis=-1, weight=None, eps=None, *, normalized_shape=None, **options):
    """``x / sqrt(mean(x ** 2) + eps) * weight`` of each row.

    Parameters
    ----------
    x : array
        Any array that `coulis.reduce` takes.
    axis : int, tuple of int, or None
        The axes of a row; None is all of them.
    weight : array, or None
        Of the shape of a row.
    eps : float, or None
        Added under the root; by default the distance from 1 to the next number of the type of `x`.
    normalized_shape : tuple of int
        The lengths of the last axes, which a row then has, in place of `axis`.
    **options
        As in `coulis.softmax`.

    Returns
    -------
    array
        Of the library, shape and type of `x`; float64 for integers.

    Examples
    --------
    >>> import coulis, numpy as np
    >>> coulis.rms_norm(np.array([[3.0, 3.0]]), eps=0)
    array([[1., 1.]])
    """
    axis = _of_shape(x, axis, normalized_shape)
    return consume(x, "rms_norm", axis, {"weight": weight}, {"eps": eps}, **options)


def batch_norm(x, axis, weight=None, bias=None, eps=1e-5, **options):
    """``(x - mean) / sqrt(var + eps) * weight + bias`` of each channel, by the statistics of `x`.

    Parameters
    ----------
    x : array
        Any array that `coulis.reduce` takes.
    axis : int or tuple of int
        The axes that are not channels: (0, 2, 3) for images in NCHW order.
    weight, bias : array, or None
        Of the shape of the channels.
    eps : float
        Added under the root.
    **options
        As in `coulis.softmax`; and `ddof`.

    Returns
    -------
    array
        Of the library, shape and type of `x`; float64 for integers.

    Examples
    --------
    >>> import coulis, numpy as np
    >>> coulis.batch_norm(np.array([[1.0, 10.0], [3.0, 30.0]]), axis=0, eps=0)
    array([[-1., -1.],
           [ 1.,  1.]])
    """
    return consume(x, "batch_norm", axis, {"weight": weight, "bias": bias}, {"eps": eps}, _OPTIONS, **options)


class Consumer:
    """A user-defined map over the elements and the statistics of their row. `coulis.consumer` makes it.

    Called with an array, the axes of a row (the last one by default), the arrays beside it by their names, and the options of
    `coulis.softmax`, it gives an array of the shape of `x`; of its type, float64 for integers.
    """

    def __init__(self, map, statistics, beside, name):
        self._made = (map, statistics, beside, name)
        self.name, self._beside = name, tuple(beside)
        self._own = OwnConsumer(name, map, list(statistics), list(beside.items()))

    def __call__(self, x, axis=-1, **options):
        """The result for an array, or for a tuple of arrays where a statistic reads two."""
        missing = [array for array in self._beside if options.get(array) is None]
        if missing:
            raise TypeError(f"`{self.name}` reads `{missing[0]}` beside the elements; give that array by its name")
        beside = {array: options.pop(array) for array in self._beside}
        return consume(x, self._own, axis, beside, {}, _OPTIONS, **options)

    def __reduce__(self):
        return Consumer, self._made

    def __repr__(self):
        return f"<coulis.Consumer {self.name}>"


def consumer(*, map: Any, statistics: Any, beside: Any = None, name: str) -> Consumer:
    """A user-defined map: it reads each element again with the statistics of its row while that is in a cache.

    The function is called with symbolic values, once for the types of an input, all in the type in which the map computes:
    float32 for floats of at most 32 bits, else float64. `coulis.te` has functions of such values.

    Parameters
    ----------
    map : function
        Of the element (of two, where a statistic reads two arrays), then of the results of the statistics, then of the
        arrays beside the elements; it gives the result of the element.
    statistics : list of str
        Statistics of the catalogue that the function reads, in this order; `maxloc` and `minloc` have two results.
    beside : dict, or None
        Names of arrays that are read beside the elements, in this order, and the axes that they have: "reduced" (one value
        a position in a row), "kept" (one value a row) or "all". They are broadcast to these.
    name : str
        Its name in messages.

    Returns
    -------
    Consumer

    Raises
    ------
    ValueError
        Unknown statistics or axes, a name that is an option's; when it is called, a map that gives no float.
    TypeError
        A `map` that is no function.

    Examples
    --------
    >>> import coulis, numpy as np
    >>> standardise = coulis.consumer(
    ...     map=lambda x, mean, std, w: (x - mean) / std * w, statistics=["mean", "std"], beside={"w": "reduced"}, name="standardise"
    ... )
    >>> standardise(np.array([[1.0, 3.0], [5.0, 5.5]]), w=np.array([1.0, 10.0]))
    array([[-1., 10.],
           [-1., 10.]])
    """
    if not callable(map):
        raise TypeError(f"`map` of consumer `{name}` is to be a function, got {type(map).__name__}")
    beside = dict(beside or {})
    names = sorted(_OPTIONS | {"x", "axis"})
    taken = [array for array in beside if array in names or not array.isidentifier()]
    if taken:
        raise ValueError(f"an array of consumer `{name}` cannot be called `{taken[0]}`; legal are identifiers but {', '.join(names)}")
    listed = {own for own, _, _ in ops()}
    statistics = [statistics] if isinstance(statistics, str) else list(statistics)
    unknown = [one for one in statistics if one not in listed]
    if unknown or not statistics:
        found = f"got `{unknown[0]}`" if unknown else "got none"
        raise ValueError(f"consumer `{name}` reads statistics of the catalogue, {found}; legal are {', '.join(sorted(listed))}")
    return Consumer(map, statistics, beside, name)


def _of_shape(x, axis, normalized_shape):
    """The last axes, where their lengths are given; they are compared with those of `x`."""
    if normalized_shape is None:
        return axis
    is_one = hasattr(normalized_shape, "__index__") and not hasattr(normalized_shape, "__len__")
    wanted = tuple(operator.index(n) for n in ([normalized_shape] if is_one else normalized_shape))
    shape = _shape(x)
    if len(wanted) == 0 or shape[-len(wanted) :] != wanted:
        raise ValueError(f"`normalized_shape` is to be the last lengths of {shape}, got {wanted}")
    last = tuple(range(-len(wanted), 0))
    if axis != -1:
        given = range(len(shape)) if axis is None else [axis] if hasattr(axis, "__index__") else axis
        if {operator.index(a) % len(shape) for a in given} != {a % len(shape) for a in last}:
            raise ValueError(f"axis {axis!r} and `normalized_shape` {wanted} name different axes")
    return last


def _shape(x):
    """The lengths of an array, or of what lists become."""
    if isinstance(x, (list, tuple)):
        import numpy

        x = numpy.asarray(x)
    return tuple(getattr(x, "shape", ()))
