"""What functions of the caller take, where coulis calls them with symbolic values."""

from __future__ import annotations

import inspect


def check(function, what, legal):
    """How many arguments a function is called with: one of the numbers in `legal`, ascending.

    Parameters without a default are counted: one with a default keeps its value, as in ``lambda v, k=k: v * k``. A function
    with ``*args``, and one that does not tell its parameters, takes the first number that it can. Raises ``TypeError``
    where `function` is none, or takes no such number.
    """
    if not callable(function):
        raise TypeError(f"{what} is to be a function, got an object of type `{type(function).__name__}`")
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return legal[0]
    named = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty]
    if named:
        raise TypeError(f"{what} wants `{named[0]}` by name, and is called with arguments by position")
    wanted = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty]
    is_open = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    for n in legal:
        if len(wanted) == n or is_open and len(wanted) < n:
            return n
    words = " or ".join(map(str, legal))
    raise TypeError(f"{what} takes {len(wanted)} arguments without a default; legal is {words}")
