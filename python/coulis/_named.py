"""Named tuples of results: one class a list of fields, which other processes can make again."""

from __future__ import annotations

from collections import namedtuple
from functools import lru_cache


@lru_cache(maxsize=None)
def named(name: str, fields: tuple[str, ...]) -> type:
    """The class of that name with those fields.

    Its tuples are pickled and copied by name and fields, since the class itself is in no module.
    """
    made = namedtuple(name, fields, module="coulis")

    def __reduce__(self):
        return _made, (name, fields, tuple(self))

    made.__reduce__ = __reduce__
    return made


def _made(name, fields, values):
    return named(name, fields)(*values)
