"""Reductions for PyTorch: a registered operator, which `torch.compile` keeps in its graph, with gradients.

`coulis.sum(tensor)` reads tensors too, but knows nothing of graphs. The functions here are PyTorch's own in that respect:
one operator, `coulis::reduce`, gives any set of statistics in one read, is traced by shapes alone, and has gradients for
all that are functions here, and for `maxloc` and `minloc`. A second one, `coulis::normalize`, is softmax and the norms of
layers, with gradients of the weights too.

Each statistic with a gradient and each normalization of the catalogue is a function: `coulis.torch.mean(x, axis)`,
`coulis.torch.layer_norm(x, axis, weight, bias)`. Their docstrings say what they take.
"""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any, NamedTuple, Optional, Sequence

import torch
from torch import Tensor
from torch.autograd import forward_ad

from . import _normalizations, _coulis, _libraries
from ._named import named

__all__ = ["reduce"]

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Functions that are made from the catalogues, which a type checker cannot follow."""


@torch.compiler.assume_constant_result
def _named(name, fields):
    """The classes of results are made when a graph is traced, and are no part of it."""
    return named(name, fields)


def _tuple(name, fields, values):
    """A named tuple; PyTorch 2.15 follows no call of a class that it takes for a constant, but this."""
    return tuple.__new__(_named(name, fields), values)


def _integers(axis):
    """Axes as they were given, in a list: the operators' schemas would take fractions and texts too."""
    axes = list(axis) if isinstance(axis, (tuple, list)) else [axis]
    for one in axes:
        if isinstance(one, bool) or not hasattr(one, "__index__"):
            kind = type(one).__name__
            message = f"`axis` is to be an integer, a tuple of integers or None, got an object of type `{kind}`"
            raise TypeError(message)
    return [operator.index(one) for one in axes]


def _checked(x):
    """Refuses what is no dense tensor, and derivatives forwards, which the operators would silently take for 0."""
    if not isinstance(x, Tensor):
        raise TypeError(f"`x` is to be a tensor of PyTorch, got an object of type `{type(x).__name__}`")
    if x.is_nested:
        # PyTorch refuses these before the operators see them, in words of its own.
        _libraries.Torch.dense(x, "x")
    if forward_ad._current_level >= 0 and forward_ad.unpack_dual(x).tangent is not None:
        raise NotImplementedError(
            "coulis.torch has no derivatives in forward mode (torch.func.jvp, jacfwd, dual tensors); "
            "those of reverse mode are there (backward, torch.autograd.grad)"
        )


def _wide(dtype):
    """The type in which gradients are computed: squares and sums over a row leave the range and precision of 16 bits."""
    return torch.float32 if dtype.itemsize < 4 or not dtype.is_floating_point else dtype


def _dimensions(ndim):
    return f"{ndim} dimension" if ndim == 1 else f"{ndim} dimensions"


def _axes(axis, ndim):
    """The reduced axes, ascending; what is wrong with them, `coulis.reduce` says."""
    axes = range(ndim) if axis is None else axis
    return sorted({a + ndim if a < 0 else a for a in axes})


def _in_order_of(x, axes, shape, dtype):
    """What a result is like: of this shape, its axes in the order in which `axes` of `x` lie in memory (`Order::OfInput` in Rust)."""
    strides = [x.stride(a) for a in axes]
    moving = [d for d, n in enumerate(shape) if n != 1 and strides[d] != 0]
    order = list(range(len(shape)))
    for place, d in zip(moving, sorted(moving, key=lambda d: strides[d], reverse=True)):
        order[place] = d
    return torch.empty_permuted(shape, order, dtype=dtype, device=x.device)


@torch.library.custom_op("coulis::reduce", mutates_args=())
def _op(x: Tensor, ops: str, axis: Optional[Sequence[int]], keepdims: bool, ddof: float) -> list[Tensor]:
    # Names are joined by commas: schemas of operators know no lists of strings.
    found = _coulis.reduce(x, ops.split(","), None if axis is None else tuple(axis), keepdims=keepdims, ddof=ddof)
    results = []
    for one in found:
        results.extend(one if isinstance(one, tuple) else [one])
    return results


@_op.register_fake
def _(x, ops, axis, keepdims, ddof):
    axes = _axes(axis, x.ndim)
    if any(not 0 <= a < x.ndim for a in axes):
        raise _coulis.AxisError(f"axes {tuple(axis)} are out of range: the array has {_dimensions(x.ndim)}")
    left = [d for d in range(x.ndim) if keepdims or d not in axes]
    shape = [1 if d in axes else x.shape[d] for d in left]
    name = str(x.dtype).removeprefix("torch.")
    narrow = {"float8_e4m3": "float8_e4m3fn"}
    dtypes = [narrow.get(dtype, dtype) for _, dtype in _coulis.results_of(name, ops.split(","))]
    return [_in_order_of(x, left, shape, getattr(torch, dtype)) for dtype in dtypes]


class _Gradient(NamedTuple):
    """The gradient of a statistic or of a normalization."""

    #: What gives it; `None` where there is none.
    rule: Any
    #: Whether the rule looks at the elements, which are kept for it then; it is handed None otherwise.
    of_elements: bool = True
    #: Whether it looks at the result, as it does in PyTorch. The same.
    of_result: bool = False


_NO_GRADIENT = _Gradient(None, of_elements=False)


def _setup_context(ctx, inputs, output):
    x, ops, axis, keepdims, ddof = inputs
    ctx.axes, ctx.keepdims, ctx.ddof = _axes(axis, x.ndim), keepdims, ddof
    ctx.shape, ctx.dtype = x.shape, x.dtype
    # Of an operator that gives a list, PyTorch takes an empty list for one of tensors, whose gradients are a list.
    ctx.of_axis = [] if axis is not None and len(axis) == 0 else None
    ctx.names = [name for name, _ in _coulis.results_of(str(x.dtype).removeprefix("torch."), ops.split(","))]
    ctx.mark_non_differentiable(*[found for found in output if not found.is_floating_point()])
    # A statistic that nobody differentiates has no gradient, rather than one of 0: 0 times an infinite slope is NaN.
    ctx.set_materialize_grads(False)
    # What is kept must not be changed in place before the backward pass, so that no more is kept than is asked for.
    gradients = [_GRADIENTS.get(name, _NO_GRADIENT) for name in ctx.names]
    ctx.kept = [name for name, gradient in zip(ctx.names, gradients) if gradient.of_result]
    own = x if any(gradient.of_elements for gradient in gradients) else None
    ctx.save_for_backward(own, *[found for gradient, found in zip(gradients, output) if gradient.of_result])


def _backward(ctx, grads):
    own, *found = ctx.saved_tensors
    wide = _wide(ctx.dtype)
    x, total, kept = None if own is None else own.to(wide), None, dict(zip(ctx.kept, found))

    def broadcast(values):
        """A gradient or a result in the type of the work, with its reduced axes."""
        values = values.to(wide)
        if not ctx.keepdims:
            for a in ctx.axes:
                values = values.unsqueeze(a)
        return values

    for name, grad in zip(ctx.names, grads):
        if grad is None or not grad.is_floating_point():
            continue
        rule = _GRADIENTS.get(name, _NO_GRADIENT).rule
        if rule is None:
            legal = ", ".join(_GRADIENTS)
            raise NotImplementedError(f"`{name}` has no gradient; those of coulis.torch are {legal}")
        result = broadcast(kept[name]) if name in kept else None
        part = rule(ctx, x, broadcast(grad), result)
        total = part if total is None else total + part
    return (None if total is None else total.to(ctx.dtype)), None, ctx.of_axis, None, None


def _length(ctx):
    return math.prod(ctx.shape[a] for a in ctx.axes)


def _sum(ctx, x, grad, result):
    return grad.expand(ctx.shape)


def _mean(ctx, x, grad, result):
    return (grad / _length(ctx)).expand(ctx.shape)


def _var(ctx, x, grad, result):
    mean = x.mean(ctx.axes, keepdim=True) if ctx.axes else x
    # Tensors are divided by 0, where numbers raise: of nothing, and of as many elements as `ddof`.
    return 2 * grad / (_length(ctx) - ctx.ddof) * (x - mean)


def _std(ctx, x, grad, result):
    # Where nothing varies the slope is not defined; 0 is the one in the middle.
    half = (grad / (2 * result)).masked_fill(result == 0, 0)
    return _var(ctx, x, half, result)


def _extremum(ctx, x, grad, result):
    """Equal extrema share the gradient, as in `torch.amax`."""
    chosen = (x == result) | (x.isnan() & result.isnan())
    share = grad / chosen.sum(ctx.axes, keepdim=True) if ctx.axes else grad
    return share * chosen


def _power(exponent):
    """Two to the power of integers from -1022 to 1023, exactly."""
    return ((exponent + 1023) << 52).view(torch.float64)


def _times_power(number, exponent):
    """A number of `float64` times a power of two that may be beyond its range; only the last product rounds."""
    half = exponent >> 1
    return number * _power(half) * _power(exponent - half)


# Numbers of `float64` from `2 ** -_APART` to `2 ** _APART` have normal products.
_APART = 500


def _scaled(number, exponent, apart):
    """The same `number * 2 ** exponent`, whose numbers are `2 ** apart` from 1 at most; those that are too far from it are put
    from 1/2 to 1. Zeros, infinities and NaN stay what they are."""
    if apart <= _APART:
        return number, exponent, apart
    with torch.no_grad():
        if apart <= 1022:
            # None is subnormal, and the exponents that zeros and infinities have in memory change none of them.
            more = (number.view(torch.int64) >> 52 & 2047).clamp(max=2044) - 1022
            return number * _power(-more), exponent + more, 1
        more = torch.frexp(number.masked_fill(~number.isfinite(), 0)).exponent.to(torch.int64)
    return _times_power(number, -more), exponent + more, 1


def _prod(ctx, x, grad, result):
    """The product of the other elements. A tree of products has groups of elements at its feet; what a node is multiplied by is
    what its parent is, times its neighbour. Nothing is divided, so elements of 0 need no care, nor do derivatives of this. As in
    `prod` itself exponents are kept apart, so that no order of products overflows; the products of a group need none."""
    length = _length(ctx)
    if length <= 1:
        return grad.expand(x.shape)
    order = [a for a in range(x.ndim) if a not in ctx.axes] + ctx.axes
    kept = [x.shape[a] for a in order[: x.ndim - len(ctx.axes)]]

    def start(values, n):
        return values.to(torch.float64).reshape([*kept, n])

    # How far from 1 the elements are; the products of four of type `float32` are numbers of `float64`.
    far = 1074 if x.dtype == torch.float64 else 149
    number, others = start(x.permute(order), length), None
    if x.dtype != torch.float64:
        number = torch.nn.functional.pad(number, (0, -length % 4), value=1.0).unflatten(-1, (-1, 2, 2))
        halves = number[..., 0] * number[..., 1]
        others = number.flip(-1) * halves.flip(-1)[..., None]
        number = halves[..., 0] * halves[..., 1]
    nothing = torch.zeros((), dtype=torch.int64, device=x.device)
    number, exponent, apart = _scaled(number, nothing.expand(number.shape), far if others is None else 4 * far)
    n, levels = number.shape[-1], []
    while number.shape[-1] > 1:
        if number.shape[-1] % 2 == 1:
            number = torch.nn.functional.pad(number, (0, 1), value=1.0)
            exponent = torch.nn.functional.pad(exponent, (0, 1))
        number, exponent = number.unflatten(-1, (-1, 2)), exponent.unflatten(-1, (-1, 2))
        levels.append((number.flip(-1), exponent.flip(-1), apart))
        number, exponent, apart = _scaled(number[..., 0] * number[..., 1], exponent.sum(-1), 2 * apart)
    number = start(grad, 1)
    number, exponent, apart = _scaled(number, nothing.expand(number.shape), far)
    for neighbours, exponents, neighbours_apart in reversed(levels):
        pairs = neighbours.shape[-2]
        number = (number[..., :pairs, None] * neighbours).flatten(-2)
        exponent = (exponent[..., :pairs, None] + exponents).flatten(-2)
        number, exponent, apart = _scaled(number, exponent, apart + neighbours_apart)
    number, exponent = number[..., :n], exponent[..., :n]
    # What is beyond the last powers is beyond the numbers too, and 0 times any of them is 0.
    if others is None:
        found = _times_power(number, exponent.clamp(-2040, 2040))
    else:
        number, exponent, _ = _scaled(number, exponent, apart + _APART)
        found = ((number * _power(exponent.clamp(-700, 700)))[..., None, None] * others).flatten(-3)
    found = found[..., :length]
    back = sorted(range(x.ndim), key=order.__getitem__)
    return found.reshape([x.shape[a] for a in order]).permute(back).to(x.dtype)


def _logsumexp(ctx, x, grad, result):
    """All of the gradient, shared out by the softmax; nothing where every element is minus infinity."""
    is_nothing = result == -math.inf
    return grad * (x - result.masked_fill(is_nothing, 0)).exp().masked_fill(is_nothing, 0)


def _absmax(ctx, x, grad, result):
    return _extremum(ctx, x.abs(), grad, result) * x.sign().where(x == x, x)


def _norm1(ctx, x, grad, result):
    return grad * x.sign()


def _norm2(ctx, x, grad, result):
    """0 where the norm is, as in `torch.linalg.vector_norm`."""
    return x * (grad / result).masked_fill(result == 0, 0)


def _sumsq(ctx, x, grad, result):
    return 2 * grad * x


def _meansq(ctx, x, grad, result):
    return (2 * grad / _length(ctx)) * x


_GRADIENTS = {
    "sum": _Gradient(_sum, of_elements=False),
    "mean": _Gradient(_mean, of_elements=False),
    "var": _Gradient(_var),
    "std": _Gradient(_std, of_result=True),
    "max": _Gradient(_extremum, of_result=True),
    "min": _Gradient(_extremum, of_result=True),
    "maxloc.value": _Gradient(_extremum, of_result=True),
    "minloc.value": _Gradient(_extremum, of_result=True),
    "prod": _Gradient(_prod),
    "logsumexp": _Gradient(_logsumexp, of_result=True),
    "absmax": _Gradient(_absmax, of_result=True),
    "norm1": _Gradient(_norm1),
    "norm2": _Gradient(_norm2, of_result=True),
    "sumsq": _Gradient(_sumsq),
    "meansq": _Gradient(_meansq),
}

_op.register_autograd(_backward, setup_context=_setup_context)


def reduce(x, ops, axis=None, *, keepdims=False, ddof=0.0):
    """Reduces a tensor: one read, any set of statistics, in the graph of PyTorch.

    Parameters
    ----------
    x : torch.Tensor
        On the CPU or a CUDA device, under any strides.
    ops : str, or list of str
        Statistics of the catalogue by name, as in `coulis.reduce`.
    axis : int, tuple of int, or None
        Axes to reduce; all of them by default.
    keepdims : bool
        Whether reduced axes stay, with length 1.
    ddof : float
        Taken off the count in `var` and `std`.

    Returns
    -------
    torch.Tensor, or named tuple of tensors
        On the device of `x`. A statistic with two results gives a named tuple of its own.

    Raises
    ------
    TypeError
        An `x` that is no tensor, statistics that are no names.
    ValueError
        Unknown or repeated statistics, an axis that is not there.
    NotImplementedError
        In the backward pass: a statistic without a gradient. In any pass: derivatives forwards.

    Examples
    --------
    >>> import torch, coulis.torch
    >>> x = torch.arange(4.0, requires_grad=True)
    >>> found = coulis.torch.reduce(x, ["sum", "max"])
    >>> (found.sum + 2 * found.max).backward()
    >>> x.grad
    tensor([1., 1., 1., 3.])
    """
    _checked(x)
    is_single = isinstance(ops, str)
    names = [ops] if is_single else list(ops) if isinstance(ops, (tuple, list)) else [ops]
    for name in names:
        if not isinstance(name, str):
            kind = type(name).__name__
            raise TypeError(f"`ops` is to be the name of a statistic, or a list of names, got an object of type `{kind}`")
        if "," in name:
            # No name has one, and the operator takes it for two.
            _coulis.results_of(str(x.dtype).removeprefix("torch."), [name])
    axes = None if axis is None else _integers(axis)
    found = iter(_op(x, ",".join(names), axes, keepdims, float(ddof)))
    results = []
    for name in names:
        if name in ("maxloc", "minloc"):
            results.append(_tuple(name, ("value", "index"), (next(found), next(found))))
        else:
            results.append(next(found))
    return results[0] if is_single else _tuple("Reduced", tuple(names), results)


def _of_one(name):
    def function(x, axis=None, *, keepdims=False, **options):
        return reduce(x, name, axis, keepdims=keepdims, **options)

    function.__name__ = function.__qualname__ = name
    ddof = "\n    ddof : float\n        Taken off the count." if name in ("var", "std") else ""
    function.__doc__ = f"""`{name}` of a tensor, with its gradient.

    Parameters
    ----------
    x : torch.Tensor
    axis : int, tuple of int, or None
        Axes to reduce; all of them by default.
    keepdims : bool
        Whether reduced axes stay, with length 1.{ddof}

    Returns
    -------
    torch.Tensor
    """
    function.__module__ = __name__
    return function


# A function for each statistic that has a gradient.
_STATISTICS = {name: _of_one(name) for name in _GRADIENTS if "." not in name}
globals().update(_STATISTICS)
__all__ += _STATISTICS


@torch.library.custom_op("coulis::normalize", mutates_args=())
def _normalize(
    x: Tensor,
    name: str,
    axis: Sequence[int],
    arrays: Sequence[Tensor],
    given: str,
    parameters: Sequence[float],
    where: Optional[Tensor],
) -> Tensor:
    # The names of the arrays that are given are joined by commas: schemas of operators know no dictionaries. The mask has no default, which
    # PyTorch would leave out of what has gradients.
    beside = dict(zip(given.split(","), arrays))
    return _coulis.normalize(x, name, tuple(axis), beside, _parameters(name, parameters), where=where)


@_normalize.register_fake
def _(x, name, axis, arrays, given, parameters, where):
    if any(not -x.ndim <= a < x.ndim for a in axis):
        raise _coulis.AxisError(f"axes {tuple(axis)} are out of range: the array has {_dimensions(x.ndim)}")
    return _in_order_of(x, range(x.ndim), x.shape, x.dtype if x.is_floating_point() else torch.float64)


def _parameters(name, values):
    """The parameters of a normalization by name, from their values in the order of the catalogue."""
    return {parameter: value for (parameter, _, _), value in zip(_ENTRIES[name].parameters, values)}


def _setup_normalize(ctx, inputs, output):
    x, ctx.name, axis, arrays, given, parameters, where = inputs
    ctx.axes, ctx.given, ctx.parameters = _axes(axis, x.ndim), given.split(",") if arrays else [], _parameters(ctx.name, parameters)
    # PyTorch takes an empty list for one of tensors, whose gradients are a list.
    ctx.of_empty = [[] if len(values) == 0 else None for values in (axis, parameters)]
    # Who does not look at the result again lets it be changed in place.
    ctx.dtype = output.dtype
    ctx.save_for_backward(x, output if _GRADIENTS_OF_NORMALIZATIONS.get(ctx.name, _NO_GRADIENT).of_result else None, where, *arrays)


def _backward_normalize(ctx, grad):
    own, y, where, *arrays = ctx.saved_tensors
    rule = _GRADIENTS_OF_NORMALIZATIONS.get(ctx.name, _NO_GRADIENT).rule
    if rule is None:
        legal = ", ".join(_GRADIENTS_OF_NORMALIZATIONS)
        raise NotImplementedError(f"`{ctx.name}` has no gradient; those of coulis.torch are {legal}")
    wide = _wide(ctx.dtype)
    beside = dict(zip(ctx.given, arrays))
    # Of elements that are left out zeros stand in sums, whatever they are.
    taken = (lambda values: values) if where is None else (lambda values: torch.where(where, values, 0))
    rows = _Rows(ctx.axes, taken)
    of_x, of_arrays = rule(ctx, rows, own.to(wide), grad.to(wide), None if y is None else y.to(wide), beside)
    of_axis, of_parameters = ctx.of_empty
    return of_x.to(own.dtype), None, of_axis, [of_arrays[name] for name in ctx.given], None, of_parameters, None


class _Rows(NamedTuple):
    """The rows of a tensor."""

    axes: Sequence[int]
    #: The values of elements that take part, and zeros.
    taken: Any

    def total(self, values):
        """The sum over each row. PyTorch takes no axes for all of them."""
        return values.sum(self.axes, keepdim=True) if self.axes else values

    def counted(self, x):
        """How many elements of each row take part."""
        return self.total(self.taken(torch.ones_like(x)))


def _softmax(ctx, rows, x, grad, y, beside):
    grad = rows.taken(grad)
    return y * (grad - rows.total(grad * y)), {}


def _log_softmax(ctx, rows, x, grad, y, beside):
    grad = rows.taken(grad)
    return grad - y.exp() * rows.total(grad), {}


def _norm(is_centred, along):
    """The rule of elements, less their mean or as they are, over the root of their mean square; its arrays lie along the
    reduced axes or the kept ones. Every element has a result, and those that take part have a part in those of the others."""

    def rule(ctx, rows, x, grad, y, beside):
        n = rows.counted(x)
        mean = lambda values: rows.total(rows.taken(values)) / n  # noqa: E731
        centred = x - mean(x) if is_centred else x
        scale = (mean(centred * centred) + ctx.parameters["eps"]).rsqrt()
        unit = centred * scale
        own = [a for a in range(x.ndim) if (a in ctx.axes) == (along == "reduced")]
        others = [a for a in range(x.ndim) if a not in own]

        def of_array(values, array):
            # What is broadcast has the gradients of all that it stood for.
            return (values.sum(others) if others else values).sum_to_size(array.shape).to(array.dtype)

        inner, of_arrays = grad, {}
        if (weight := beside.get("weight")) is not None:
            whole = weight.to(x.dtype).expand([x.shape[a] for a in own])
            inner = grad * whole.reshape([x.shape[a] if a in own else 1 for a in range(x.ndim)])
            of_arrays["weight"] = of_array(grad * unit, weight)
        if (bias := beside.get("bias")) is not None:
            of_arrays["bias"] = of_array(grad, bias)
        of_row = unit * rows.total(inner * unit)
        if is_centred:
            of_row = of_row + rows.total(inner)
        return (inner - rows.taken(of_row / n)) * scale, of_arrays

    return rule


_GRADIENTS_OF_NORMALIZATIONS = {
    "softmax": _Gradient(_softmax, of_result=True),
    "log_softmax": _Gradient(_log_softmax, of_result=True),
    "layer_norm": _Gradient(_norm(is_centred=True, along="reduced")),
    "rms_norm": _Gradient(_norm(is_centred=False, along="reduced")),
    "batch_norm": _Gradient(_norm(is_centred=True, along="kept")),
}

_normalize.register_autograd(_backward_normalize, setup_context=_setup_normalize)

_WORDS = {
    "x": "x : torch.Tensor",
    "options": lambda entry: _normalizations.WORDS_OF_WHERE,
    "result": ["torch.Tensor", "    Of the shape and type of `x`; float64 for integers. In the graph of PyTorch, with gradients."],
    "examples": lambda entry: [],
}


def _function_of(entry):
    name = entry.name

    def call(x, axis, arrays, parameters, where):
        _checked(x)
        axes = list(range(x.ndim)) if axis is None else _integers(axis)
        if x.ndim == 0 and axes in ([0], [-1]):
            # The one element is a row, whose first axis and last one are none, as in PyTorch.
            axes = []
        given = {array: values for array, values in arrays.items() if values is not None}
        dtype = x.dtype if x.is_floating_point() else torch.float64
        values = [float(torch.finfo(dtype).eps if value is None else value) for value in parameters.values()]
        return _normalize(x, name, axes, list(given.values()), ",".join(given), values, where)

    function = entry.function(call, ["*", "where=None"], _WORDS)
    function.__module__ = __name__
    return function


# A function for each normalization of the catalogue.
_ENTRIES = {entry.name: entry for entry in _normalizations.entries()}
globals().update({name: _function_of(entry) for name, entry in _ENTRIES.items()})
__all__ += _ENTRIES
