"""Reductions of the Array API agree with NumPy's and with array-api-strict's."""

import array_api_strict as strict
import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import coulis

SETTINGS = settings(
    max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck), database=None
)
INTS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float32", "float64"]


def values(dtype):
    """Small numbers, so that integers do not wrap and floats have a bound worth having."""
    if dtype == "bool":
        return st.booleans()
    if dtype in FLOATS:
        return st.floats(-8, 8, width=32, allow_nan=False, allow_subnormal=False)
    return st.integers(0 if dtype.startswith("u") else -3, 3)


@st.composite
def calls(draw, dtypes):
    """An array (of any order, reversed, with gaps), axes, and keepdims."""
    dtype = draw(st.sampled_from(dtypes))
    shape = draw(hnp.array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=5))
    x = draw(hnp.arrays(dtype, shape, elements=values(dtype)))
    x = x.transpose(draw(st.permutations(range(x.ndim))))
    steps = draw(st.lists(st.sampled_from([1, -1, 2]), min_size=x.ndim, max_size=x.ndim))
    x = x[tuple(slice(None, None, step) for step in steps)]
    one = st.integers(-x.ndim, x.ndim - 1)
    several = st.lists(st.integers(0, x.ndim - 1), unique=True, min_size=1).map(tuple)
    return x, draw(st.one_of(st.none(), one, several)), draw(st.booleans())


def check(ours, wanted, dtype, bound=0.0):
    """The shape, the type, and values within the bound, which is that of the reducer, before one rounding to the type."""
    assert np.shape(ours) == np.shape(wanted)
    assert np.asarray(ours).dtype == dtype
    if np.issubdtype(dtype, np.floating):
        ours, wanted = np.asarray(ours, "f8"), np.asarray(wanted, "f8")
        bound = bound + (np.finfo(dtype).eps * (np.abs(wanted) + bound) if np.any(bound) else 0)
        assert np.all(np.abs(ours - wanted) <= bound), (ours, wanted)
    else:
        np.testing.assert_array_equal(ours, wanted)


def accumulated(dtype):
    """``eps`` of the accumulator of a type."""
    return 2.0**-23 if dtype == np.float32 else 2.0**-52


def wide(dtype):
    """Type of sums of integers."""
    return np.dtype("uint64" if dtype.kind == "u" else "int64") if dtype.kind in "iub" else dtype


@pytest.mark.parametrize("op", ["sum", "prod"])
@SETTINGS
@given(call=calls(INTS + FLOATS))
def test_sums_and_products(op, call):
    x, axis, keepdims = call
    dtype = wide(x.dtype)
    wanted = getattr(np, op)(x, axis=axis, keepdims=keepdims, dtype="float64" if dtype.kind == "f" else dtype)
    if dtype.kind == "f":
        wanted = wanted.astype(dtype)
    scale = np.sum(np.abs(x.astype("f8")), axis=axis, keepdims=keepdims) if op == "sum" else np.abs(wanted)
    factor = 32 if op == "sum" or x.dtype == np.float32 else 2 * x.size
    ours = coulis.reduce(x, op, axis, keepdims=keepdims)
    check(ours, wanted, dtype, factor * accumulated(x.dtype) * scale + 1e-300)


@pytest.mark.parametrize("op", ["min", "max"])
@SETTINGS
@given(call=calls(INTS + FLOATS))
def test_extrema(op, call):
    x, axis, keepdims = call
    check(coulis.reduce(x, op, axis, keepdims=keepdims), getattr(np, op)(x, axis=axis, keepdims=keepdims), x.dtype)


@pytest.mark.parametrize("op", ["mean", "var", "std"])
@SETTINGS
@given(call=calls(FLOATS + ["int32"]))
def test_statistics(op, call):
    x, axis, keepdims = call
    wanted = getattr(np, op)(x.astype("float64"), axis=axis, keepdims=keepdims)
    if op == "mean":
        bound = 32 * accumulated(x.dtype) * np.mean(np.abs(x.astype("float64")), axis=axis, keepdims=keepdims)
    else:
        # That of `float64` is 2^25 of its units; and NumPy's own is that of squares up to 64.
        bound = (32 * 2.0**-23 if x.dtype == np.float32 else 2.0**-27) * wanted + 2.0**-44
    dtype = x.dtype if x.dtype.kind == "f" else np.dtype("f8")
    check(coulis.reduce(x, op, axis, keepdims=keepdims), wanted, dtype, bound + 1e-300)


@pytest.mark.parametrize("op", ["any", "all", "count_nonzero"])
@SETTINGS
@given(call=calls(["bool", "int8", "uint16", "float32"]))
def test_truth(op, call):
    x, axis, keepdims = call
    wanted = getattr(np, op)(x, axis=axis, keepdims=keepdims)
    check(coulis.reduce(x, op, axis, keepdims=keepdims), wanted, np.dtype("int64" if op == "count_nonzero" else "bool"))


@pytest.mark.parametrize("op", ["argmax", "argmin"])
@SETTINGS
@given(call=calls(INTS + FLOATS))
def test_positions(op, call):
    x, axis, keepdims = call
    if isinstance(axis, tuple):
        axis = axis[0]
    check(coulis.reduce(x, op, axis, keepdims=keepdims), getattr(np, op)(x, axis=axis, keepdims=keepdims), np.dtype("int64"))


#: Some element types that the standard lets each reduction take.
TAKES = {
    **dict.fromkeys(["sum", "prod", "min", "max", "argmax", "argmin"], ["int8", "uint16", "int64", *FLOATS]),
    **dict.fromkeys(["mean", "var", "std"], FLOATS),
    **dict.fromkeys(["any", "all", "count_nonzero"], ["bool", "uint8", *FLOATS]),
}


@pytest.mark.parametrize("op", TAKES)
@SETTINGS
@given(data=st.data())
def test_results_are_arrays_of_the_callers_library_with_its_types(op, data):
    x, axis, keepdims = data.draw(calls(TAKES[op]))
    if op.startswith("arg") and isinstance(axis, tuple):
        axis = axis[0]
    theirs = strict.asarray(np.ascontiguousarray(x))
    ours = coulis.reduce(theirs, op, axis, keepdims=keepdims)
    wanted = getattr(strict, op)(theirs, axis=axis, keepdims=keepdims)
    assert type(ours) is type(wanted) and ours.shape == wanted.shape and ours.dtype == wanted.dtype
    bound = 1e-9 if x.dtype == np.float64 else 2e-5
    np.testing.assert_allclose(np.asarray(ours), np.asarray(wanted), rtol=bound, atol=bound * 50)
