"""The names ``T`` and ``Tx``, as far as Python itself sees them: in decorators and annotations.

The body of a kernel is read by the parser of coulis, which knows the words and refuses others by name.
"""

import sys
import types


class Word:
    """A word of the language, called or not. Python evaluates it where a signature mentions it, and forgets it."""

    def __init__(self, text):
        self._text = text

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Word(f"{self._text}.{name}")

    def __call__(self, *args, **options):
        return Word(f"{self._text}(...)")

    def __getitem__(self, index):
        return Word(f"{self._text}[...]")

    def __repr__(self):
        return self._text


class Vocabulary(Word):
    """``T`` or ``Tx``: any attribute is a word, and ``T.prim_func`` reads a function."""

    def prim_func(self, func=None, **options):
        """The kernel that a Python function is the text of; a :class:`coulis.script.PrimFunc`.

        Names that the function sees from outside stand for their values: numbers, strings, tuples of these, and layouts.
        """
        from ._function import PrimFunc

        # What only a signature mentions is in no closure, and is found where the function is defined.
        around = options.pop("_around", None) or sys._getframe(1).f_locals
        if self._text != "T":
            raise AttributeError("prim_func is a word of T, not of Tx")
        if func is None:
            return lambda inner: self.prim_func(inner, _around=around)
        if not isinstance(func, types.FunctionType):
            raise TypeError(f"@T.prim_func reads a Python function, got {type(func).__name__}")
        return PrimFunc.of(func, around)
