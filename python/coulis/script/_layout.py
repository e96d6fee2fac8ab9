"""Layouts of tiles as Python objects: ``TileLayout(S[(4, 8) : (8 @ laneid, 1)] + R[4 : 8 @ laneid] + 5 @ warpid)``.

They hold what was written and print it again; the parser of coulis says whether it has a meaning.
"""


class Stride:
    """A step along an axis: ``8 @ laneid``."""

    def __init__(self, step, axis):
        self.step, self.axis = step, axis

    def __repr__(self):
        return f"{self.step} @ {self.axis}"


class Axis:
    """An axis of a machine or of memory, by its name."""

    def __init__(self, name):
        self.name = name

    def __rmatmul__(self, step):
        step = _integer(step)
        if not isinstance(step, int) or isinstance(step, bool):
            raise TypeError(f"a step along `{self.name}` is an integer, got {step!r}")
        return Stride(step, self)

    def __repr__(self):
        return self.name


class Split:
    """Extents and their steps: ``S[(4, 8) : (8 @ laneid, 1)]``; without steps row-major."""

    def __init__(self, letter, extents, strides):
        self.letter = letter
        self.extents = tuple(_integer(extent) for extent in _listed(extents))
        self.strides = None if strides is None else tuple(_integer(stride) for stride in _listed(strides))
        for extent in self.extents:
            if not isinstance(extent, int) or isinstance(extent, bool):
                raise TypeError(f"the extents of {letter} are integers, got {extent!r}")
            if extent < 1:
                raise ValueError(f"the extents of {letter} are at least 1, got {extent}")
        for stride in self.strides or ():
            if not isinstance(stride, (int, Stride, str)) or isinstance(stride, bool):
                raise TypeError(f"the steps of {letter} are integers, `step @ axis` or names of axes, got {stride!r}")
        if self.strides is not None and len(self.strides) != len(self.extents):
            count, steps = len(self.extents), len(self.strides)
            raise ValueError(f"{letter} has {count} extents and takes as many steps, got {steps}")

    def __add__(self, other):
        return Layout([self]) + other

    def __repr__(self):
        strides = "" if self.strides is None else f" : {_text(self.strides)}"
        return f"{self.letter}[{_text(self.extents)}{strides}]"


class Layout:
    """A sum of ``S[...]``, ``R[...]`` and offsets."""

    def __init__(self, terms):
        self.terms = list(terms)

    def __add__(self, other):
        if isinstance(other, Layout):
            return Layout(self.terms + other.terms)
        if isinstance(other, (Split, Stride, int)):
            return Layout([*self.terms, other])
        return NotImplemented

    def __repr__(self):
        return " + ".join(repr(term) for term in self.terms)


class TileLayout:
    """Where the elements of a tile are: on which threads, and where in their memory."""

    def __init__(self, layout):
        if isinstance(layout, Split):
            layout = Layout([layout])
        if not isinstance(layout, Layout) or not isinstance(layout.terms[0], Split) or layout.terms[0].letter != "S":
            raise TypeError(f"a layout is a sum that begins with S[...], got {layout!r}")
        self.terms = layout.terms

    @property
    def shard(self):
        """The ``S[...]``."""
        return self.terms[0]

    @property
    def replica(self):
        """The ``R[...]``, or None."""
        return next((t for t in self.terms if isinstance(t, Split) and t.letter == "R"), None)

    @property
    def offset(self):
        """The offsets, ``step @ axis`` each, or integers along memory."""
        return [t for t in self.terms if not isinstance(t, Split)]

    def __eq__(self, other):
        return isinstance(other, TileLayout) and repr(self) == repr(other)

    def __hash__(self):
        return hash(repr(self))

    def __repr__(self):
        return f"TileLayout({Layout(self.terms)!r})"


class ComposeLayout:
    """A layout whose addresses in memory are swizzled: bits of the address are mixed by exclusive or."""

    def __init__(self, per_element, swizzle_len, atom_len, layout):
        if not isinstance(layout, TileLayout):
            raise TypeError(f"a TileLayout is swizzled, got {layout!r}")
        self.exponents, self.layout = (per_element, swizzle_len, atom_len), layout

    def __eq__(self, other):
        return isinstance(other, ComposeLayout) and repr(self) == repr(other)

    def __hash__(self):
        return hash(repr(self))

    def __repr__(self):
        return f"ComposeLayout({', '.join(map(repr, self.exponents))}, {self.layout!r})"


class _Letter:
    """``S`` and ``R``: what is in their brackets is a split."""

    def __init__(self, name):
        self.name = name

    def __getitem__(self, key):
        if isinstance(key, slice):
            if key.step is not None:
                raise TypeError(f"{self.name} takes extents and steps, `{self.name}[extents : steps]`")
            return Split(self.name, key.start, key.stop)
        if isinstance(key, tuple) and any(isinstance(item, slice) for item in key):
            if not all(isinstance(item, slice) for item in key):
                raise TypeError(f"either all extents of {self.name} have a step or none")
            return Split(self.name, [item.start for item in key], [item.stop for item in key])
        return Split(self.name, key, None)

    def __repr__(self):
        return self.name


def _listed(value):
    return value if isinstance(value, (tuple, list)) else (value,)


def _integer(value):
    """The integer of Python that an integer of NumPy is; anything else as it is."""
    is_other = hasattr(value, "__index__") and not isinstance(value, (int, str))
    return value.__index__() if is_other else value


def _text(items):
    if len(items) == 1 and not isinstance(items[0], tuple):
        return repr(items[0])
    return f"({', '.join(repr(item) for item in items)}{',' if len(items) == 1 else ''})"


S, R = _Letter("S"), _Letter("R")
laneid, warpid, wgid, wid_in_wg, tid_in_wg, tx, m = map(
    Axis, ("laneid", "warpid", "wgid", "wid_in_wg", "tid_in_wg", "tx", "m")
)


def axis(name):
    """An axis of any name."""
    if not name.isidentifier():
        raise ValueError(f"the name of an axis is an identifier, got {name!r}")
    return Axis(name)
