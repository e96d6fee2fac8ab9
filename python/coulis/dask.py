"""Reductions of Dask arrays: one pass over the chunks, any set of statistics.

Each chunk is reduced to a state where it is; states are merged as a tree and finished at its root. All statistics of a
call share one state, so an array that is larger than one machine is read once, variance and positions included.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from ._coulis import ops as _ops
from ._coulis import reduce as _reduce
from ._coulis import steps_of as _steps_of
from ._named import named


def reduce(x, ops, axis=None, *, keepdims=False, where=None, nan="propagate", ddof=0, acc_dtype=None, split_every=8):
    """Reduces a Dask array; nothing is computed before the result is.

    Parameters
    ----------
    x : dask.array.Array
        Its chunks are arrays of NumPy, or of another library that NumPy can read.
    ops : str, Reducer, or list of these
        Statistics, as in `coulis.reduce`.
    axis : int, tuple of int, or None
        Axes to reduce; all of them by default.
    keepdims : bool
        Whether reduced axes stay, with length 1.
    where : array of bool, or None
        Which elements take part: a Dask array, or one that becomes one; broadcast to the shape of `x`.
    nan, ddof, acc_dtype
        Those of `coulis.reduce`.
    split_every : int
        States that are merged at a time, at least 2.

    Returns
    -------
    dask.array.Array, or named tuple of these
        Chunked as `x` along the axes that are left. Compute the results of one call together (`dask.compute(*found)`):
        then the chunks are read once for all of them.

    Raises
    ------
    TypeError
        An `x` that is no Dask array, elements that are no numbers.
    ValueError
        Unknown or repeated statistics, an axis that is not there, chunks of unknown size, a `where` that is not of bool
        or does not fit; and, when results are computed, extrema and positions of nothing.
    NotImplementedError
        Statistics of two arrays, complex elements, and a reducer that is not commutative where chunks do not follow each
        other in row-major order: where one axis is chunked and a reduced one before it has chunks of more than one element.

    Examples
    --------
    >>> import coulis.dask, dask.array
    >>> x = dask.array.arange(12, chunks=5).reshape(3, 4)
    >>> found = coulis.dask.reduce(x, ["mean", "argmax"])
    >>> float(found.mean), int(found.argmax)
    (5.5, 11)
    """
    import dask
    import dask.array as da

    if not isinstance(x, da.Array):
        raise TypeError(f"`x` is to be a Dask array, got an object of type `{type(x).__name__}`")
    if any(math.isnan(length) for lengths in x.chunks for length in lengths):
        raise ValueError("the chunks of `x` have unknown sizes; call its `compute_chunk_sizes()` first")
    if not isinstance(split_every, int) or split_every < 2:
        raise ValueError(f"`split_every` is to be an integer of at least 2, got {split_every!r}")
    if not isinstance(keepdims, (bool, np.bool_)):
        raise TypeError(f"`keepdims` is to be True or False, got an object of type `{type(keepdims).__name__}`")
    axes = _axes(axis, x.ndim)
    _refuse_unread(x, ops, axes)
    steps = _steps_of(str(x.dtype), ops, nan, ddof, acc_dtype)
    if not steps["any_order"]:
        _refuse_disorder(x, axes)
    kept = [d for d in range(x.ndim) if d not in axes]
    begins = [np.concatenate(([0], np.cumsum(lengths)[:-1])).astype(int) for lengths in x.chunks]
    blocks = x.to_delayed()
    masks = None if where is None else _mask(where, x).to_delayed()
    part, merge = (dask.delayed(function, pure=True) for function in (_part, _merge))

    def state(place):
        begin = [int(begins[d][place[d]]) for d in axes]
        whole = [x.shape[d] for d in axes]
        mask = None if masks is None else masks[place]
        return part(blocks[place], mask, steps["part"], steps["fields"], axes, nan, begin, whole)

    def results(place):
        over = itertools.product(*[range(x.numblocks[d]) if d in axes else [place[kept.index(d)]] for d in range(x.ndim)])
        states = [state(block) for block in over]
        while len(states) > split_every:
            groups = [states[at : at + split_every] for at in range(0, len(states), split_every)]
            states = [merge(group, steps["merge"]) if len(group) > 1 else group[0] for group in groups]
        return merge(states, steps["finish"], [(name, of_none) for name, _, of_none in steps["results"]])

    n_blocks = [x.numblocks[d] for d in kept]
    grid = np.empty(n_blocks, dtype=object)
    for place in itertools.product(*map(range, n_blocks)):
        grid[place] = results(place)
    arrays = {}
    for at, (name, dtype, _) in enumerate(steps["results"]):
        pieces = np.empty(n_blocks, dtype=object)
        for place in itertools.product(*map(range, n_blocks)):
            shape = tuple(x.chunks[d][p] for d, p in zip(kept, place))
            pieces[place] = da.from_delayed(grid[place][at], shape, dtype=_numpy_dtype(dtype))
        array = da.block(pieces.tolist()) if kept else pieces[()]
        if keepdims:
            array = array[tuple(None if d in axes else slice(None) for d in range(x.ndim))]
        arrays[name] = array
    return _assembled(ops, arrays)


def _axes(axis, ndim):
    """The reduced axes, ascending."""
    from ._coulis import AxisError

    given = range(ndim) if axis is None else axis if isinstance(axis, (tuple, list)) else [axis]
    axes = []
    for one in given:
        if isinstance(one, bool) or not hasattr(one, "__index__"):
            raise TypeError(f"`axis` is to be an integer, a tuple of integers or None, got {axis!r}")
        one = one.__index__()
        if not -ndim <= one < ndim:
            legal = f"legal axes are {-ndim} to {ndim - 1}" if ndim else "and no axes"
            raise AxisError(f"axis {one} is out of range: the array has {ndim} dimension{'' if ndim == 1 else 's'}, {legal}")
        axes.append(one % ndim)
    if len(set(axes)) != len(axes):
        raise ValueError(f"an axis is given twice: {axis!r}")
    return sorted(axes)


def _refuse_unread(x, ops, axes):
    """Refuses statistics of two arrays; lets `coulis.reduce` judge complex elements, and the shape where the reduced axes hold nothing."""
    of_two = {name for name, n_inputs, _ in _ops() if n_inputs > 1}
    for op in ops if isinstance(ops, (list, tuple)) else [ops]:
        if isinstance(op, str) and op in of_two:
            raise NotImplementedError(f"`{op}` reads two arrays; legal are statistics of one, as `sum` of their product")
    if x.dtype.kind == "c" or math.prod(x.shape[d] for d in axes) == 0:
        _reduce(np.empty([min(n, 1) for n in x.shape], x.dtype), ops, tuple(axes))


def _refuse_disorder(x, axes):
    """Refuses chunks that are no runs of elements in row-major order: those of an axis after one along which they have several."""
    for at, d in enumerate(axes):
        long = [before for before in axes[:at] if max(x.chunks[before], default=0) > 1]
        if x.numblocks[d] > 1 and long:
            raise NotImplementedError(
                "a reducer does not claim to be commutative, so its elements are to be folded in order, and chunks "
                f"{x.chunks} split axis {d} inside of chunks along axis {long[0]}; "
                f"rechunk to one chunk along axis {d} (`x.rechunk({{{d}: -1}})`)"
            )


def _numpy_dtype(name):
    try:
        return np.dtype(name)
    except TypeError:
        import ml_dtypes

        return np.dtype(getattr(ml_dtypes, {"float8_e4m3": "float8_e4m3fn"}.get(name, name)))


def _mask(where, x):
    """The mask as an array of the shape and the chunks of `x`."""
    import dask.array as da

    mask = where if isinstance(where, da.Array) else da.asarray(where)
    if mask.dtype != bool:
        raise ValueError(f"`where` is to hold bool, got {mask.dtype}")
    # Dask repeats the first chunk of what it broadcasts, which may be one of no elements.
    mask = mask.rechunk({d: -1 for d, length in enumerate(mask.shape) if length == 1})
    try:
        return da.broadcast_to(mask, x.shape).rechunk(x.chunks)
    except ValueError:
        message = f"`where` of shape {mask.shape} does not broadcast to the shape of `x`, {x.shape}"
        raise ValueError(message) from None


def _part(block, mask, reducer, fields, axes, nan, begin, whole):
    """The state of a chunk: a list of arrays, one a field, whose positions are those of the whole array.

    Where there is a mask, one more array says for which outputs an element takes part.
    """
    block, mask = _aligned(block), _aligned(mask)
    found = _reduce(block, reducer, tuple(axes), nan=nan, where=mask)
    state = [np.asarray(field) for field in (found if len(fields) > 1 else [found])]
    lengths = [np.shape(block)[d] for d in axes]
    state = [
        _shifted(field, lengths, begin, whole) if is_position else field
        for field, (_, is_position) in zip(state, fields)
    ]
    return state, None if mask is None else np.asarray(_reduce(mask, "any", tuple(axes)))


def _aligned(block):
    """The chunk, copied where its elements lie at odd addresses, as those do that came in a message of a cluster."""
    return block.copy() if isinstance(block, np.ndarray) and not block.flags.aligned else block


def _shifted(positions, lengths, begin, whole):
    """Positions within a chunk as positions within the whole; -1, which is none, stays."""
    if 0 in lengths or not lengths:
        return positions
    inside = np.unravel_index(np.maximum(positions, 0), lengths)
    outside = np.zeros_like(positions)
    for at, first, length in zip(inside, begin, whole):
        outside = outside * length + (at + first)
    return np.where(positions < 0, positions, outside)


def _merge(states, reducer, results=None):
    """The state of several states; or the results, of which names and what they are of no elements are given: a list of arrays."""
    fields, taken = zip(*states)
    stacked = tuple(np.stack(field) for field in zip(*fields))
    found = _reduce(stacked if len(stacked) > 1 else stacked[0], reducer, 0)
    found = [np.asarray(result) for result in (found if isinstance(found, tuple) else [found])]
    taken = None if taken[0] is None else np.logical_or.reduce(taken)
    if results is None:
        return found, taken
    for (name, of_none), result in zip(results, found):
        name = name.partition(".")[0]
        if of_none == "no position" and (result < 0).any():
            raise ValueError(f"`{name}` of an empty set has no position")
        if of_none == "untold" and taken is not None and not taken.all():
            at = int(np.argmin(taken))
            raise ValueError(f"`{name}` of an empty set has no value: no element takes part in output {at}")
    return found


def _assembled(ops, arrays):
    """One array, or named tuples: of the statistics, and of those that have several results."""
    is_single = not isinstance(ops, (list, tuple))
    values = []
    names = [op if isinstance(op, str) else op.name for op in ([ops] if is_single else ops)]
    for name in names:
        own = {key.partition(".")[2] or "value": array for key, array in arrays.items() if key.partition(".")[0] == name}
        values.append(next(iter(own.values())) if len(own) == 1 else named(name, tuple(own))(**own))
    return values[0] if is_single else named("Reduced", tuple(names))(*values)
