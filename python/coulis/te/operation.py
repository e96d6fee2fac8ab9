"""Inputs, computed tensors, axes and schedules."""

import inspect as _inspect

from .._coulis import te as _te


def placeholder(shape, dtype=None, name="placeholder"):
    """An input of that shape.

    ``shape``: extents, each an int or an integer expression; ``dtype``: float32 where none is named. A tensor with a
    variable among its extents takes arrays of any strides, others take row-major ones.

    Raises ``ValueError`` for a negative extent, or an extent of another type than integers, and ``TypeError`` for
    an unknown dtype, or an extent that is no number at all.
    """
    return _te.placeholder(_extents(shape), "float32" if dtype is None else dtype, name)


def compute(shape, fcompute, name="compute", tag="", attrs=None, varargs_names=None):
    """The tensor whose element at ``i, j, ...`` is ``fcompute(i, j, ...)``.

    ``fcompute`` takes one variable a dimension and gives an expression, a reduction, or a tuple of either, which makes a
    tuple of tensors. The names of its parameters are the names of the axes. ``tag`` and ``attrs`` are read and not used.

    Raises ``ValueError`` or ``TypeError`` for a body that has no meaning: a reduction inside an expression, an axis that
    nobody iterates, a tensor read with the wrong number of indices.
    """
    extents = _extents(shape)
    names = _axis_names(fcompute, len(extents), name, varargs_names)
    tensors = _te.compute(extents, names, name, fcompute)
    return tensors[0] if len(tensors) == 1 else tuple(tensors)


def _extents(shape):
    return tuple(shape) if isinstance(shape, (list, tuple)) else (shape,)


def _axis_names(fcompute, rank, name, varargs_names):
    spec = _inspect.getfullargspec(fcompute)
    params = spec.args[1:] if _inspect.ismethod(fcompute) else spec.args
    if spec.varkw is not None or spec.defaults is not None or spec.kwonlyargs:
        raise TypeError(f"the body of `{name}` takes one index a dimension: no defaults, no keywords")
    if spec.varargs is not None:
        rest = [f"i{at}" for at in range(rank - len(params))]
        params = params + list(rest if varargs_names is None else varargs_names)
    elif not params and rank:
        params = [f"i{at}" for at in range(rank)]
    return params


def reduce_axis(dom, name="rv", thread_tag="", span=None):
    """An axis to fold over; ``dom`` is ``(min, end)``, or a ``Range``.

    ``end`` is not part of it. Both are integers or integer expressions, which may use the indices of the tensor that is
    computed, and elements of other tensors.
    """
    if thread_tag:
        raise ValueError("a reduce axis has no thread tag; bind it in a schedule")
    if isinstance(dom, _te.Range):
        return _te.reduce_axis(dom.min, dom.min + dom.extent, name)
    if not isinstance(dom, (list, tuple)) or len(dom) != 2:
        raise TypeError(f"the domain of a reduce axis is (min, end), got {dom!r}")
    return _te.reduce_axis(dom[0], dom[1], name)


def thread_axis(dom=None, tag="", name="", span=None):
    """A block or thread index to bind loops to: ``thread_axis("blockIdx.x")``.

    A domain is read and not used: the loop that is bound has one.
    """
    if isinstance(dom, str):
        tag, dom = dom, None
    if not tag:
        raise ValueError('a thread axis has a tag, as "threadIdx.x"')
    return _te.thread_axis("vthread" if tag == "cthread" else tag)


def create_schedule(ops):
    """The schedule of an operation or a list of them: each stage in a loop nest of its own.

    ``s[B]`` is the stage of ``B``, and the primitives are its methods: ``s[B].split(k, factor=16)``. Those that make new
    stages are methods of the schedule: ``s.rfactor(B, ki)``. ``dir(s[B])`` lists them, and ``s[B].split.about`` tells what one
    does, with an example.
    ``s.trace`` is what was done, as code, which ``te.replay`` does again, and ``s.explain()`` what came of it.
    """
    return _te.create_schedule(ops)


def replay(ops, trace, args=None):
    """The schedule of an operation or a list of them after the steps of a trace: what ``s.trace`` says, or an edit of it.

    The steps name stages and axes as the trace prints them, and are checked as calls are. Lowered, the schedule has the
    text of the one whose trace it is::

        s = te.create_schedule(B.op)
        s[B].split(B.op.axis[0], factor=4)
        again = te.replay(B.op, s.trace)

    A factor or number of parts is read back where it is of 32-bit integers and sizes of the program joined by ``+``,
    ``-``, ``*``, ``//``, ``%``, ``T.max`` and ``T.min``; a conversion and a constant of another type are refused.
    Of two sizes of one name ``n`` the second is ``n_1``. A size that only a parameter tells which is never read is found
    where ``args`` lists it: the parameters, as ``build`` takes them. Of several such sizes each is to have its own name.

    Raises ``ValueError`` for a text that is no trace, with its line, and for a step that is refused.
    """
    return _te.replay(ops, trace, args)
