"""Normalizations: maps that read each element again with the statistics of its row, as softmax and the norms do.

A row is read from memory once: its statistics are finished and its elements mapped while it is in a cache.
"""

from __future__ import annotations

import inspect
import itertools
import numbers
import operator
import textwrap
from typing import Any, NamedTuple

from ._coulis import OwnNormalization, normalizations, ops
from ._coulis import normalize as _normalize

#: What a call of a normalization takes by name in addition to arrays.
_OPTIONS = frozenset(name for name, p in inspect.signature(_normalize).parameters.items() if p.kind is p.KEYWORD_ONLY)
#: Those of normalizations that compute no variance.
_WITHOUT_DDOF = _OPTIONS - {"ddof"}


def _refused(options, legal, name):
    """The error of options that are not legal, in the words of the caller."""
    unknown = min(options.keys() - legal)
    return TypeError(f"{name}() got an unexpected keyword argument {unknown!r}; its options are {', '.join(sorted(legal))}")


class Entry(NamedTuple):
    """What the catalogue says of a normalization."""

    name: str
    summary: str
    details: str
    example: str
    #: Name, default (None is that of the input's type) and meaning of each parameter, which is a number.
    parameters: list[tuple[str, float | None, str]]
    #: Name, axes ("reduced", "kept" or "all") and meaning of each array.
    arrays: list[tuple[str, str, str]]
    takes_ddof: bool

    def lies_along(self, axes):
        """Whether one of its arrays has these axes."""
        return any(along == axes for _, along, _ in self.arrays)

    def function(self, call, rest, words):
        """A function whose result is that of `call(x, axis, arrays, parameters, ...)`; `rest` are the names that it takes behind those,
        as in ``*, normalized_shape=None, **options``, by which it hands them on.

        Where arrays lie along the kept axes, as those of channels, no axis is the usual one. The function is made from text, as
        named tuples are: so it costs a call what one that is written out does, and Python says what is wrong with one.
        """
        own = ["x", "axis" if self.lies_along("kept") else "axis=-1"]
        own += [f"{name}=None" for name, _, _ in self.arrays] + [f"{name}={default!r}" for name, default, _ in self.parameters]
        pairs = lambda entries: "{" + ", ".join(f"{entry[0]!r}: {entry[0]}" for entry in entries) + "}"  # noqa: E731
        handed = [name if name.startswith("**") else f"{name}={name}" for name in (one.split("=")[0] for one in rest if one != "*")]
        words_of_call = ", ".join(["x", "axis", pairs(self.arrays), pairs(self.parameters), *handed])
        names = {"call": call}
        exec(f"def {self.name}({', '.join([*own, *rest])}):\n    return call({words_of_call})\n", names)  # noqa: S102
        function = names[self.name]
        function.__doc__ = self.docstring(words)
        return function

    def docstring(self, words):
        """Its docstring; `words` are the lines that say what else there is."""
        sentence = lambda text: f"{text[0].upper()}{text[1:]}"  # noqa: E731
        lines = [self.summary, "", textwrap.fill(self.details, 100), "", "Parameters", "----------", words["x"]]
        lines += ["axis : int, tuple of int, or None", "    The reduced axes, those of a row; None is all of them."]
        for name, along, meaning in self.arrays:
            lines += [f"{name} : array, or None", f"    {sentence(meaning)}, along {'all' if along == 'all' else f'the {along}'} axes."]
        for name, default, meaning in self.parameters:
            otherwise = "; by default the distance from 1 to the next number of the type of `x`" if default is None else ""
            lines += [f"{name} : float{', or None' if default is None else ''}", f"    {sentence(meaning)}{otherwise}."]
        lines += words["options"](self)
        lines += ["", "Returns", "-------", *words["result"]]
        return "\n".join(lines + words["examples"](self))


def entries():
    """The catalogue."""
    return [Entry(*entry) for entry in normalizations()]


class Mapped(NamedTuple):
    """A normalization of a plan, with what a call of it takes."""

    #: Its name, or one of the caller's own.
    ops: Any
    #: Arrays beside the elements, and numbers, by name.
    arrays: dict[str, Any]
    parameters: dict[str, Any]
    options: dict[str, Any]

    @property
    def of(self):
        """What `coulis._coulis.normalize` takes as its name."""
        return self.ops._own if isinstance(self.ops, Normalization) else self.ops

    def __call__(self, x, axis, options):
        """The result for an array; options may be other arrays and numbers too."""
        given = dict(options)
        shapes = sorted(name for name, one in self.arrays.items() if isinstance(one, tuple) and name not in given)
        if shapes:
            raise TypeError(f"the plan has the shape of `{shapes[0]}` only; give that array by its name")
        plan = given.pop("plan")
        one = mapped(self.ops, {**self.options, **self.arrays, **self.parameters, **given})
        return _normalize(x, self.of, axis, one.arrays, one.parameters, **{**one.options, "plan": plan})


def mapped(asked, options):
    """What is asked for, where that is a normalization, by name or one of the caller's own; None where it is of statistics."""
    if isinstance(asked, Normalization):
        asked._complete(options)
        name, arrays, parameters, legal = asked.name, asked._beside, (), _OPTIONS
    else:
        listed = {entry.name: entry for entry in entries()}
        among = [one for one in asked if isinstance(one, (str, Normalization))] if isinstance(asked, (list, tuple)) else []
        several = [str(getattr(one, "name", one)) for one in among if isinstance(one, Normalization) or one in listed]
        if several:
            raise ValueError(f"`{several[0]}` is a normalization, which is planned by itself and in no list")
        if not isinstance(asked, str):
            return None
        entry = listed.get(asked)
        if entry is None:
            statistics = [own for own, _, _ in ops()]
            if asked not in statistics:
                legal = f"statistics {', '.join(statistics)}, and normalizations {', '.join(listed)}"
                raise ValueError(f"nothing is called `{asked}`; legal are the {legal}")
            return None
        name, legal = entry.name, _OPTIONS if entry.takes_ddof else _WITHOUT_DDOF
        arrays, parameters = ([one[0] for one in some] for some in (entry.arrays, entry.parameters))
    rest = dict(options)
    given = [{name: rest.pop(name, None) for name in names} for names in (arrays, parameters)]
    if not rest.keys() <= legal:
        raise _refused(rest, legal.union(arrays, parameters), name)
    return Mapped(asked, *given, rest)


def make():
    """The functions by name."""
    return {entry.name: _function(entry) for entry in entries()}


def _function(entry):
    name, legal = entry.name, _OPTIONS if entry.takes_ddof else _WITHOUT_DDOF
    by_shape = ["*", "normalized_shape=None"] if entry.lies_along("reduced") else []

    def call(x, axis, arrays, parameters, **options):
        if by_shape and (shape := options.pop("normalized_shape")) is not None:
            axis = _of_shape(_shape(x, options.get("prologue") is not None), axis, shape)
        if not options.keys() <= legal:
            raise _refused(options, legal, name)
        return _normalize(x, name, axis, arrays, parameters, **options)

    function = entry.function(call, [*by_shape, "**options"], _WORDS)
    function.__module__ = "coulis"
    return function


#: The lines of a docstring on masks.
WORDS_OF_WHERE = ["where : array of bool, or None", "    Which elements take part in the statistics, broadcast to `x`; all by default."]


def _options(entry):
    """The lines of a docstring on what else a function takes."""
    lines = []
    if entry.lies_along("reduced"):
        lines += ["normalized_shape : tuple of int", "    The lengths of the last axes, which a row then has, in place of `axis`."]
    lines += WORDS_OF_WHERE
    ddof = "`ddof`, " if entry.takes_ddof else ""
    return lines + ["**options", f"    {ddof}`dtype`, `acc_dtype`, `nan`, `alpha`, `beta`, `out`, `device`, `stream`, `plan`, `prologue`, as in `coulis.reduce`."]


_WORDS = {
    "x": "x : array, or tuple of arrays\n    Any array that `coulis.reduce` takes; the arrays of a `prologue`.",
    "options": _options,
    "result": ["array", "    Of the library, shape and type of `x`; float64 for integers."],
    "examples": lambda entry: ["", "Examples", "--------", entry.example],
}


class Normalization:
    """A user-defined map over the elements and the statistics of their row. `coulis.normalization` makes it.

    Called with an array, the axes of a row (the last one by default), the arrays beside it by their names, and the options of
    `coulis.softmax`, it gives an array of the shape of `x`; of its type, float64 for integers.
    """

    def __init__(self, map, statistics, beside, name, left_out):
        self._made = (map, statistics, beside, name, left_out)
        self.name, self._beside = name, tuple(beside)
        self._own = OwnNormalization(name, map, list(statistics), list(beside.items()), left_out)

    def __call__(self, x, axis=-1, **options):
        """The result for an array, or for a tuple of arrays where a statistic reads two."""
        self._complete(options)
        beside = {array: options.pop(array) for array in self._beside}
        if not options.keys() <= _OPTIONS:
            raise _refused(options, _OPTIONS, self.name)
        return _normalize(x, self._own, axis, beside, {}, **options)

    def _complete(self, options):
        """Refuses options among which one of its arrays is missing."""
        missing = [array for array in self._beside if options.get(array) is None]
        if missing:
            raise TypeError(f"`{self.name}` reads `{missing[0]}` beside the elements; give that array by its name")

    def __reduce__(self):
        return Normalization, self._made

    def __repr__(self):
        return f"<coulis.Normalization {self.name}>"


def normalization(*, map: Any, statistics: Any, beside: Any = None, name: str, left_out: Any = None) -> Normalization:
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
    left_out : float, or None
        The result of an element that `where` leaves out; None is what the function gives of it, as of others.

    Returns
    -------
    Normalization

    Raises
    ------
    ValueError
        Unknown statistics or axes, a name that is an option's; when it is called, a map that gives no float.
    TypeError
        A `map` that is no function.

    Examples
    --------
    >>> import coulis, numpy as np
    >>> standardise = coulis.normalization(
    ...     map=lambda x, mean, std, w: (x - mean) / std * w, statistics=["mean", "std"], beside={"w": "reduced"}, name="standardise"
    ... )
    >>> standardise(np.array([[1.0, 3.0], [5.0, 5.5]]), w=np.array([1.0, 10.0]))
    array([[-1., 10.],
           [-1., 10.]])
    """
    if not callable(map):
        raise TypeError(f"`map` of normalization `{name}` is to be a function, got {type(map).__name__}")
    beside = dict(beside or {})
    names = sorted(_OPTIONS | {"self", "x", "axis", "ops", "x_or_shape", "x_dtype"})
    taken = [array for array in beside if array in names or not array.isidentifier()]
    if taken:
        raise ValueError(f"an array of normalization `{name}` cannot be called `{taken[0]}`; legal are identifiers but {', '.join(names)}")
    listed = {own for own, _, _ in ops()}
    statistics = [statistics] if isinstance(statistics, str) else list(statistics)
    unknown = [one for one in statistics if one not in listed]
    if unknown or not statistics:
        found = f"got `{unknown[0]}`" if unknown else "got none"
        raise ValueError(f"normalization `{name}` reads statistics of the catalogue, {found}; legal are {', '.join(sorted(listed))}")
    if left_out is not None and (isinstance(left_out, bool) or not isinstance(left_out, numbers.Real)):
        raise TypeError(f"`left_out` of normalization `{name}` is to be a number or None, got {type(left_out).__name__}")
    return Normalization(map, statistics, beside, name, left_out)


def _of_shape(shape, axis, normalized_shape):
    """The last axes, whose lengths are given; they are compared with those of the elements."""
    is_one = hasattr(normalized_shape, "__index__") and not hasattr(normalized_shape, "__len__")
    wanted = tuple(operator.index(n) for n in ([normalized_shape] if is_one else normalized_shape))
    if len(wanted) == 0 or shape[-len(wanted) :] != wanted:
        raise ValueError(f"`normalized_shape` is to be the last lengths of {shape}, got {wanted}")
    last = tuple(range(-len(wanted), 0))
    if axis != -1:
        given = range(len(shape)) if axis is None else [axis] if hasattr(axis, "__index__") else axis
        if {operator.index(a) % len(shape) for a in given} != {a % len(shape) for a in last}:
            raise ValueError(f"axis {axis!r} and `normalized_shape` {wanted} name different axes")
    return last


def _shape(x, has_prologue=False):
    """The lengths of an array, of what lists become, or, beside a prologue, of what the shapes of several arrays broadcast to."""
    if has_prologue and isinstance(x, tuple) and any(hasattr(one, "shape") for one in x):
        reversed_shapes = [_shape(one)[::-1] for one in x]
        lengths = itertools.zip_longest(*reversed_shapes, fillvalue=1)
        return tuple(next((n for n in along if n != 1), 1) for along in lengths)[::-1]
    if isinstance(x, (list, tuple)):
        import numpy

        x = numpy.asarray(x)
    return tuple(getattr(x, "shape", ()))
