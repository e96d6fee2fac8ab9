"""Maps that read each element with the statistics of its row: softmax and the norms.

A row is read from memory once: its statistics are finished and its elements mapped while it is in a cache.
"""

from __future__ import annotations

import inspect
import operator
import textwrap
from typing import Any, NamedTuple

from ._coulis import OwnConsumer, consumers, ops
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


class Entry(NamedTuple):
    """What the catalogue says of a consumer."""

    name: str
    summary: str
    details: str
    example: str
    #: Name, default (None is that of the input's type) and meaning of each number.
    numbers: list[tuple[str, float | None, str]]
    #: Name, axes ("reduced", "kept" or "all") and meaning of each array.
    arrays: list[tuple[str, str, str]]
    takes_ddof: bool

    def lies_along(self, axes):
        """Whether one of its arrays has these axes."""
        return any(along == axes for _, along, _ in self.arrays)

    def signature(self, options):
        """The parameters of its function. Where arrays lie along the kept axes, as those of channels, no axis is the usual one."""
        empty, named = inspect.Parameter.empty, inspect.Parameter.POSITIONAL_OR_KEYWORD
        defaults = {"x": empty, "axis": empty if self.lies_along("kept") else -1}
        defaults |= {name: None for name, _, _ in self.arrays} | {name: default for name, default, _ in self.numbers}
        parameters = [inspect.Parameter(name, named, default=default) for name, default in defaults.items()]
        return inspect.Signature([*parameters, *options])

    def function(self, call, options, words):
        """A function of that signature, whose result is that of `call(x, axis, arrays, numbers, **options)`."""
        signature = self.signature(options)
        defaults = {name: p.default for name, p in list(signature.parameters.items())[1:] if p.kind is p.POSITIONAL_OR_KEYWORD}
        order = list(defaults)
        arrays, numbers = [name for name, _, _ in self.arrays], [name for name, _, _ in self.numbers]
        is_open = any(p.kind is p.VAR_KEYWORD for p in options)
        legal = tuple(signature.parameters)

        def check(*args, **options):
            try:
                signature.bind(*args, **options)
            except TypeError as error:
                raise TypeError(f"{self.name}(): {error}") from None

        def function(x, *args, **options):
            if args:
                if len(args) > len(order) or any(name in options for name in order[: len(args)]):
                    check(x, *args, **options)
                options.update(zip(order, args))
            if not is_open and any(name not in legal for name in options):
                check(x, **options)
            axis = options.pop("axis", defaults["axis"])
            if axis is inspect.Parameter.empty:
                check(x)
            given = {name: options.pop(name, None) for name in arrays}
            return call(x, axis, given, {name: options.pop(name, defaults[name]) for name in numbers}, **options)

        function.__name__ = function.__qualname__ = self.name
        function.__signature__ = signature
        function.__doc__ = self.docstring(words)
        return function

    def docstring(self, words):
        """Its docstring; `words` are the lines that say what else there is."""
        sentence = lambda text: f"{text[0].upper()}{text[1:]}"  # noqa: E731
        lines = [self.summary, "", textwrap.fill(self.details, 100), "", "Parameters", "----------", words["x"]]
        lines += ["axis : int, tuple of int, or None", "    The reduced axes, those of a row; None is all of them."]
        for name, along, meaning in self.arrays:
            lines += [f"{name} : array, or None", f"    {sentence(meaning)}, along {'all' if along == 'all' else f'the {along}'} axes."]
        for name, default, meaning in self.numbers:
            otherwise = "; by default the distance from 1 to the next number of the type of `x`" if default is None else ""
            lines += [f"{name} : float{', or None' if default is None else ''}", f"    {sentence(meaning)}{otherwise}."]
        lines += words["options"](self)
        lines += ["", "Returns", "-------", *words["result"]]
        return "\n".join(lines + words["examples"](self))


def entries():
    """The catalogue."""
    return [Entry(*entry) for entry in consumers()]


def make():
    """The functions by name."""
    return {entry.name: _function(entry) for entry in entries()}


def _function(entry):
    legal = _OPTIONS if entry.takes_ddof else _WITHOUT_DDOF
    by_shape = [inspect.Parameter("normalized_shape", inspect.Parameter.KEYWORD_ONLY, default=None)] * entry.lies_along("reduced")

    def call(x, axis, arrays, numbers, **options):
        if by_shape and "normalized_shape" in options:
            axis = _of_shape(x, axis, options.pop("normalized_shape"))
        return consume(x, entry.name, axis, arrays, numbers, legal, **options)

    function = entry.function(call, [*by_shape, inspect.Parameter("options", inspect.Parameter.VAR_KEYWORD)], _WORDS)
    function.__module__ = "coulis"
    return function


def _options(entry):
    """The lines of a docstring on what else a function takes."""
    lines = []
    if entry.lies_along("reduced"):
        lines += ["normalized_shape : tuple of int", "    The lengths of the last axes, which a row then has, in place of `axis`."]
    ddof = "`ddof`, " if entry.takes_ddof else ""
    return lines + ["**options", f"    {ddof}`dtype`, `acc_dtype`, `nan`, `alpha`, `beta`, `out`, `device`, `stream`, `plan`, as in `coulis.reduce`."]


_WORDS = {
    "x": "x : array\n    Any array that `coulis.reduce` takes.",
    "options": _options,
    "result": ["array", "    Of the library, shape and type of `x`; float64 for integers."],
    "examples": lambda entry: ["", "Examples", "--------", ">>> import coulis, numpy as np", entry.example],
}


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
