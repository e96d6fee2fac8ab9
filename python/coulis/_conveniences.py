"""A function for each statistic of the catalogue, made from the catalogue."""

from __future__ import annotations

from ._coulis import ops, reduce

#: What `describe` gives, in one read.
DESCRIBED = ("count", "mean", "std", "min", "max")


def _of_one(name, summary):
    def function(x, axis=None, **options):
        return reduce(x, name, axis, **options)

    return _named(function, name, summary, "x : array")


def _of_two(name, summary):
    def function(x, y, axis=None, **options):
        return reduce((x, y), name, axis, **options)

    return _named(function, name, summary, "x, y : array\n    Of shapes that broadcast to one; lists and numbers become arrays of NumPy. The second holds the weights.")


def _named(function, name, summary, arrays):
    function.__name__ = function.__qualname__ = name
    function.__module__ = "coulis"
    function.__doc__ = f"""{summary}

    Parameters
    ----------
    {arrays.replace(chr(10), chr(10) + "    ")}
    axis : int, tuple of int, or None
        Axes to reduce; all of them by default.
    **options
        Those of `coulis.reduce`.
    """
    return function


def make():
    """The functions by name."""
    return {
        name: (_of_one if n_inputs == 1 else _of_two)(name, summary) for name, n_inputs, summary in ops()
    }


def describe(x, axis=None, **options):
    """Count, mean, standard deviation, minimum and maximum, in one read.

    Parameters
    ----------
    x : array
    axis : int, tuple of int, or None
        Axes to reduce; all of them by default.
    **options
        Those of `coulis.reduce`.

    Returns
    -------
    named tuple of arrays
        Fields `count`, `mean`, `std`, `min`, `max`.

    Examples
    --------
    >>> import coulis, numpy as np
    >>> coulis.describe(np.array([1.0, 2.0, 3.0])).mean
    np.float64(2.0)
    """
    return reduce(x, list(DESCRIBED), axis, **options)
