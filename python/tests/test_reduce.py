"""`coulis.reduce`: what it gives, and what it takes."""

import numpy as np
import pytest

import coulis

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def test_a_string_gives_one_result_and_a_list_a_named_tuple():
    assert coulis.reduce(X, "sum") == np.float32(276)
    both = coulis.reduce(X, ["min", "max"], axis=(0, 2))
    assert both._fields == ("min", "max")
    np.testing.assert_array_equal(both.max, [15, 19, 23])


def test_a_full_reduction_of_a_numpy_array_gives_scalars_of_numpy():
    for dtype in ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64"]:
        x = np.ones((3, 2), dtype)
        found = coulis.reduce(x, ["min", "sum", "mean", "any", "argmax"])
        for value in found:
            assert isinstance(value, np.generic) and value.shape == ()
        assert found.min == x.min() and found.min.dtype == dtype
        assert found.sum == 6 and found.mean == 1


def test_positions_come_with_their_values():
    found = coulis.reduce(X, "maxloc", axis=-1)
    np.testing.assert_array_equal(found.value, X.max(-1))
    np.testing.assert_array_equal(found.index, X.argmax(-1))
    assert coulis.reduce(X, ["sum", "minloc"]).minloc.index == 0


def test_two_inputs_are_a_tuple_or_two_arguments():
    y = X[::-1]
    np.testing.assert_allclose(coulis.dot(X, y, axis=2), (X * y).sum(2))
    assert coulis.reduce((X, y), ["dot", "sum"]).sum == X.sum()


def test_every_view_is_read_where_it_is():
    for view in [X.T, X[::-1, ::-1, ::-2], X[:, 1:, ::3], np.broadcast_to(X[0], (5, 3, 4)), X[1, 2], X[..., None]]:
        for axis in [None, 0, -1]:
            np.testing.assert_allclose(coulis.sum(view, axis), view.sum(axis, dtype="f8"), rtol=1e-6)
            np.testing.assert_array_equal(coulis.max(view, axis), view.max(axis))


def test_an_array_without_dimensions_and_one_without_elements():
    assert coulis.sum(np.float32(3)) == 3 and coulis.mean(np.array(2)) == 2
    assert coulis.sum(np.empty((0, 3)), 0).tolist() == [0, 0, 0]
    assert coulis.sum(np.empty((0, 3)), 1).shape == (0,)
    assert np.isnan(coulis.mean(np.empty(0)))


def test_lists_and_numbers_are_arrays_of_numpy():
    assert coulis.sum([1, 2, 3]) == 6 and coulis.mean([[1.0, 2.0], [3.0, 4.0]], 0).tolist() == [2, 3]
    assert coulis.max(7) == 7


def test_masks_leave_elements_out():
    mask = X % 2 == 0
    np.testing.assert_allclose(coulis.mean(X, 1, where=mask), [[4, np.nan, 6, np.nan], [16, np.nan, 18, np.nan]])
    np.testing.assert_allclose(coulis.sum(X, (1, 2), where=mask[0, 0]), X.sum((1, 2), where=mask[0, 0]))
    assert coulis.count(X, where=mask) == 12 and coulis.sum(X, where=True) == X.sum()
    assert coulis.sum(X, where=False) == 0


def test_nan_propagates_unless_it_is_ignored():
    x = np.array([[1, np.nan], [3, 4]], np.float32)
    assert np.isnan(coulis.sum(x)) and coulis.sum(x, nan="ignore") == 8
    assert coulis.reduce(x, ["count", "max", "argmax"], nan="ignore") == (3, 4, 3)


def test_options_by_statistic():
    found = coulis.reduce(X, ["sum", "mean"], dtype={"sum": "float64"}, alpha={"mean": 2.0})
    assert found.sum.dtype == np.float64 and found.mean == 2 * X.mean()
    assert coulis.sum(X, dtype=np.float64).dtype == np.float64
    assert coulis.sum(X, dtype=np.dtype("f2")).dtype == np.float16
    assert coulis.max(np.empty(0, np.int32), init=5) == 5
    assert coulis.min(X, init=-1) == -1
    assert coulis.max(np.arange(12.0), init=10**20) == 1e20 and coulis.min(np.arange(3.0), init=-(2**64)) == -(2.0**64)
    with pytest.raises(ValueError, match="init"):
        coulis.max(np.arange(3), init=2**64)
    # Integers and floats of which float64 cannot tell that they are outside the type.
    for dtype, init in [("u8", 2**64), ("u8", 2**64 + 1), ("i8", -(2**63) - 2000), ("i8", 2.0**63)]:
        with pytest.raises(ValueError, match="is to be one of the input's type"):
            coulis.reduce(np.array([1, 2], dtype), ["sum", "max"], init=init)
    assert coulis.max(np.array([1, 2], "u8"), init=2**64 - 1) == 2**64 - 1
    with pytest.raises(ValueError, match="of 1329 bits"):
        coulis.max(np.arange(3.0), init=10**400)
    np.testing.assert_allclose(coulis.var(X, 0, ddof=1), X.var(0, ddof=1))
    assert coulis.sum(np.full(4, 100, np.int8), acc_dtype="int8").dtype is not None


def test_out_is_written_under_any_strides():
    out = np.empty((2, 4), np.float32)
    assert coulis.sum(X, 1, out=out) is out
    np.testing.assert_array_equal(out, X.sum(1))
    wide = np.zeros((2, 8), np.float32)
    assert coulis.sum(X, 1, out=wide[:, ::2]).base is wide
    np.testing.assert_array_equal(wide[:, ::2], X.sum(1))
    assert not wide[:, 1::2].any()
    named = {"max": np.empty(2, np.float32)}
    found = coulis.reduce(X, ["sum", "max"], (1, 2), out=named)
    assert found.max is named["max"] and found.max.tolist() == [11, 23]


@pytest.mark.parametrize("axes", [(2, 0, 1), (1, 2, 0), (0, 2, 1), (2, 1, 0)])
def test_results_of_a_transposed_view_lie_as_it_does(axes):
    view = X.transpose(axes)
    for axis in range(3):
        found = coulis.reduce(view, ["sum", "argmax"], axis)
        np.testing.assert_array_equal(found.sum, view.sum(axis))
        np.testing.assert_array_equal(found.argmax, view.argmax(axis))
        assert found.sum.strides == view.sum(axis).strides and found.sum.flags.owndata
        kept = coulis.sum(view, axis, keepdims=True)
        np.testing.assert_array_equal(kept, view.sum(axis, keepdims=True))
        # Where `out` lies otherwise, it is written as it lies.
        for order in "CFK":
            out = np.ones_like(view.sum(axis), order=order)
            assert coulis.sum(view, axis, out=out, beta=2) is out
            np.testing.assert_array_equal(out, view.sum(axis) + 2)
            assert coulis.sum(view, axis, out=out) is out
            np.testing.assert_array_equal(out, view.sum(axis))
        whole = coulis.softmax(view, axis)
        np.testing.assert_allclose(whole, coulis.softmax(view.copy("C"), axis), rtol=1e-6)
        assert whole.strides == view.strides
    where = view % 5 != 0
    np.testing.assert_array_equal(coulis.max(view, 0, where=where, init=-1), view.max(0, where=where, initial=-1))
    # Outputs are counted row-major, wherever they lie.
    where = np.ones(view.shape, bool)
    where[:, 1, 0] = False
    with pytest.raises(ValueError, match=f"no element takes part in output {view.shape[2]}$"):
        coulis.argmax(view, 0, where=where)


def test_outs_side_by_side_in_one_buffer_are_written():
    x = np.arange(48, dtype=np.float32).reshape(4, 4, 3)

    def check(first, second, meet):
        assert np.shares_memory(first, second) == meet
        if meet:
            with pytest.raises(ValueError, match="overlaps another result's"):
                coulis.reduce(x, ["count", "argmax"], -1, out=[first, second])
        else:
            coulis.reduce(x, ["count", "argmax"], -1, out=[first, second])
            assert (first == 3).all() and (second == 2).all()

    halves, rows, last = np.zeros((4, 8), "i8"), np.zeros((9, 4), "i8"), np.zeros((4, 4, 2), "i8")
    check(halves[:, :4], halves[:, 4:], False)
    check(halves[:, 4:], halves[::-1, :4], False)
    check(halves.T[:4].T, halves.T[4:].T, False)
    check(rows[:8:2], rows[1:8:2], False)
    check(last[..., 0], last[..., 1], False)
    check(halves[:, :4], halves[:, 3:7], True)
    check(rows[:4], rows[3:7], True)
    check(rows[:8:2], rows[1:5], True)


def test_out_may_overlap_the_input():
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    wanted = x.sum(0)
    coulis.sum(x, 0, out=x[1])
    np.testing.assert_array_equal(x[1], wanted)


@pytest.mark.parametrize("n", [3, 4, 7, 16, 100])
def test_out_may_overlap_the_mask(n):
    mask = np.ones((n, n), bool)
    mask[-1] = False
    found = coulis.reduce(np.ones((n, n), np.float32), ["any", "sum"], 1, where=mask, out={"any": mask[-1]})
    assert found.sum.tolist() == [n] * (n - 1) + [0] and found.any.tolist() == [True] * (n - 1) + [False]


def test_beta_folds_out_in():
    out = np.ones(4, np.float32)
    coulis.sum(X, (0, 1), out=out, alpha=0.5, beta=10)
    np.testing.assert_allclose(out, 0.5 * X.sum((0, 1)) + 10)
    strided = np.ones(8, np.float32)[::2]
    coulis.sum(X, (0, 1), out=strided, beta=1)
    np.testing.assert_allclose(strided, X.sum((0, 1)) + 1)
    nan = np.full(4, np.nan, np.float32)
    coulis.sum(X, (0, 1), out=nan)
    np.testing.assert_array_equal(nan, X.sum((0, 1)))


def test_arrays_that_may_not_be_written_are_read():
    x = X.copy()
    x.flags.writeable = False
    assert coulis.sum(x) == X.sum()


def test_narrow_floats_of_ml_dtypes():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    for name in ["bfloat16", "float8_e4m3fn", "float8_e5m2"]:
        dtype = getattr(ml_dtypes, name)
        x = np.arange(8).astype(dtype).reshape(2, 4)
        found = coulis.reduce(x, ["sum", "max", "mean"], axis=1)
        assert found.max.dtype == dtype
        np.testing.assert_array_equal(found.max.astype("f4"), x.astype("f4").max(1))
        assert isinstance(coulis.max(x), dtype)
        assert coulis.sum(X, dtype=dtype).dtype == dtype
        y = np.arange(24).astype(dtype).reshape(4, 6)[::-1, ::2].T
        y.flags.writeable = False
        np.testing.assert_array_equal(coulis.max(y, axis=0).astype("f4"), y.astype("f4").max(0))
        out = np.zeros((3, 2), dtype)[:, 0]
        coulis.max(y, axis=1, out=out)
        np.testing.assert_array_equal(out.astype("f4"), y.astype("f4").max(1))
        with pytest.raises(ValueError, match="not to be written"):
            coulis.max(x, axis=0, out=y[0])
    with pytest.raises(TypeError, match="legal element types"):
        coulis.max(np.ones(3, np.dtype(ml_dtypes.bfloat16).newbyteorder(">")))


def test_factors_that_are_zeros_of_two_signs_are_two_calls():
    x = np.arange(12.0).reshape(3, 4)
    for alpha in [-0.0, 0.0, -0.0]:
        for found in [coulis.sum(x, 0, alpha=alpha), coulis.softmax(x, 1, alpha=alpha)]:
            assert (np.signbit(found) == np.signbit(alpha)).all(), alpha


def test_slices_that_begin_between_accesses_are_read_by_the_simulator():
    x = np.arange(64, dtype=np.float32)
    for begin in range(1, 8):
        for part in [x[begin:], x[begin : begin + 13], x[begin:][::-1], x[begin : begin + 30 : 3]]:
            assert coulis.sum(part, device="sim") == part.sum()
            np.testing.assert_allclose(coulis.softmax(part, device="sim"), coulis.softmax(part), rtol=1e-6)
        square = x.reshape(8, 8)[:, begin:]
        for axis in [0, 1]:
            found = coulis.reduce(square, ["max", "argmax"], axis, device="sim")
            assert np.array_equal(found.max, square.max(axis)) and np.array_equal(found.argmax, square.argmax(axis))
    assert coulis.sum(memoryview(b"abcdefgh")[1:], device="sim") == sum(b"bcdefgh")


def test_what_libraries_cannot_hand_over_is_a_type_error():
    torch = pytest.importorskip("torch")
    for name in ["float8_e4m3fnuz", "float8_e8m0fnu"]:
        if not hasattr(torch, name):
            continue
        with pytest.raises(TypeError, match="cannot be read"):
            coulis.sum(torch.ones(3).to(getattr(torch, name)))


def test_tensors_of_arrow_are_arrays():
    pa = pytest.importorskip("pyarrow")
    x = np.arange(6.0).reshape(2, 3)
    assert np.array_equal(coulis.sum(pa.Tensor.from_numpy(x), 0), x.sum(0))
    with pytest.raises(TypeError, match="no single Arrow array$"):
        coulis.sum(pa.scalar(3.0))


def test_arrow_arrays_with_nulls():
    pa = pytest.importorskip("pyarrow")
    x = pa.array([1.0, None, 3.0, 5.0, None])
    found = coulis.reduce(x, ["sum", "mean", "count", "argmax"])
    assert [value.as_py() for value in found] == [9.0, 3.0, 3, 3]
    assert coulis.sum(x.slice(1, 3)).as_py() == 8
    assert coulis.any(pa.array([False, None, True]).slice(0, 2)).as_py() is False
    assert coulis.sum(x, where=np.array([True, True, True, False, True])).as_py() == 4
    assert coulis.max(pa.array([3, 1, 2], pa.int16())).as_py() == 3
    with pytest.raises(TypeError, match="Arrow's type"):
        coulis.sum(pa.array(["a"]))
    with pytest.raises(TypeError, match="dictionary_decode"):
        coulis.sum(pa.array([10, 20, 10]).dictionary_encode())
    with pytest.raises(TypeError, match="chunks"):
        coulis.sum(pa.chunked_array([[1.0], [2.0]]))
    with pytest.raises(ValueError, match="empty set"):
        coulis.max(pa.array([None, None], pa.float32()))


def test_nulls_of_arrow_take_no_part_wherever_they_stand():
    pa = pytest.importorskip("pyarrow")
    # What lies under a null is no value; here it is 100, or true.
    under = pa.array([1.0, 100.0, 3.0], pa.float32()).buffers()[1]
    w = pa.Array.from_buffers(pa.float32(), 3, [pa.py_buffer(bytes([0b101])), under])
    ones = np.ones(3, np.float32)
    assert float(coulis.dot(ones, w)) == 4 and coulis.dot(w, ones).as_py() == 4
    under = pa.array([True, True, False]).buffers()[1]
    mask = pa.Array.from_buffers(pa.bool_(), 3, [pa.py_buffer(bytes([0b101])), under])
    assert coulis.sum(ones, where=mask) == 1
    assert coulis.dot(ones, w, where=mask) == 1
    with pytest.raises(ValueError, match="an array has nulls, of which a map has no result"):
        coulis.layer_norm(np.ones((2, 3), np.float32), weight=w)


def test_arrays_of_jax():
    jnp = pytest.importorskip("jax.numpy")
    import jax

    x = jnp.asarray(X)
    found = coulis.reduce(x, ["sum", "max"], axis=1)
    assert isinstance(found.sum, jax.Array) and found.sum.dtype == jnp.float32
    np.testing.assert_array_equal(np.asarray(found.max), X.max(1))
    assert coulis.sum(x.astype(jnp.bfloat16), 0).dtype == jnp.bfloat16
    with pytest.raises(TypeError, match="`out` of `sum` is an array of JAX, which cannot be written"):
        coulis.sum(x, 1, out=coulis.sum(x, 1))
    # As is usual there, without its own 64-bit types.
    assert jnp.asarray(np.zeros(1, np.int64)).dtype == np.int32
    most = jnp.full(3, 2**31 - 1, jnp.int32)
    total = coulis.sum(most)
    assert isinstance(total, jax.Array) and total.dtype == np.int64 and int(total) == 3 * (2**31 - 1)
    assert np.asarray(coulis.mean(most)).dtype == np.float64


def test_tensors_of_torch():
    torch = pytest.importorskip("torch")
    x = torch.from_numpy(X.copy())
    found = coulis.reduce(x, ["sum", "max"], axis=1)
    assert isinstance(found.sum, torch.Tensor)
    assert torch.equal(found.max, x.amax(1))
    assert coulis.sum(x.to(torch.bfloat16), 0).dtype == torch.bfloat16
    assert coulis.sum(x.clone().requires_grad_()).item() == X.sum()
    out = torch.zeros(2, 3)
    assert coulis.sum(x, 2, out=out) is out and torch.equal(out, x.sum(2))


class Foreign:
    """An array of a library that speaks one protocol only."""

    def __init__(self, array, *names):
        self.array = array
        for name in names:
            setattr(type(self), name, property(lambda self, name=name: getattr(self.array, name)))


def test_any_array_that_speaks_a_protocol_is_read():
    by_dlpack = type("ByDlpack", (Foreign,), {})(X, "__dlpack__", "__dlpack_device__")
    by_interface = type("ByInterface", (Foreign,), {})(X, "__array_interface__")
    for x in [by_dlpack, by_interface]:
        found = coulis.sum(x, 0)
        assert isinstance(found, np.ndarray)
        np.testing.assert_array_equal(found, X.sum(0))


def test_the_conveniences_are_the_catalogue():
    for name, n_inputs, summary in coulis.ops():
        function = getattr(coulis, name)
        assert function.__name__ == name and summary in function.__doc__
        x = np.array([[1.0, 2.0], [4.0, 3.0]])
        found = function(x, 1) if n_inputs == 1 else function(x, x, 1)
        wanted = coulis.reduce(x if n_inputs == 1 else (x, x), name, 1)
        np.testing.assert_array_equal(found, wanted)


def test_describe_is_one_named_tuple():
    found = coulis.describe(X, axis=0)
    assert found._fields == ("count", "mean", "std", "min", "max")
    np.testing.assert_allclose(found.std, X.std(0))


def test_own_classes_of_numpy_arrays_are_arrays_of_numpy():
    x = X.view(type("Sub", (np.ndarray,), {}))
    assert coulis.sum(x) == X.sum()


def test_calls_that_come_again_are_told_apart():
    """A thread keeps its last calls: whatever differs between two of them shows in the results."""
    arrays = [X, X[::-1], X.T, X.astype("int16"), X.astype("float64"), X[:1], X[:, :, 0], np.asfortranarray(X)]
    options = [{}, {"keepdims": True}, {"nan": "ignore"}, {"ddof": 1}, {"where": True}, {"init": 100}]
    every = [
        (x, op, axis, words)
        for x in arrays
        for op in ["max", "min", ["max"], ["max", "min"], ("min", "max")]
        for axis in [None, 0, -1, (0,), (0, 1), [1]]
        for words in options
    ]
    order = np.random.default_rng(11).permutation(len(every) * 2) % len(every)
    for at in order[:900]:
        x, op, axis, words = every[at]
        if "ddof" in words:
            with pytest.raises(ValueError, match="ddof 1 is given, and none of the statistics"):
                coulis.reduce(x, op, axis, **words)
            continue
        found = coulis.reduce(x, op, axis, **words)
        for name, value in [(op, found)] if isinstance(op, str) else zip(op, found):
            own = tuple(axis) if isinstance(axis, list) else axis
            wanted = getattr(x, name)(own, keepdims=words.get("keepdims", False))
            if "init" in words:
                wanted = getattr(np, f"{name}imum")(wanted, x.dtype.type(100))
            assert value.dtype == wanted.dtype, (x.shape, op, axis, words)
            np.testing.assert_array_equal(value, wanted, err_msg=f"{x.shape} {op} {axis} {words}")
    assert coulis.reduce(X, ["max"])._fields == ("max",) and coulis.reduce(X, "max").shape == ()


def test_a_subclass_of_a_name_or_of_an_integer_is_read_as_what_it_is():
    class Name(str):
        pass

    assert coulis.reduce(X, Name("sum"), np.int64(0)).shape == (3, 4)
    with pytest.raises(TypeError, match="integer"):
        coulis.reduce(X, "sum", False)
    assert coulis.reduce(X, "sum", 0).shape == (3, 4)
    with pytest.raises(TypeError, match="integer"):
        coulis.reduce(X, "sum", False)


def test_results_beside_each_other_in_a_table():
    rows = X.reshape(6, 4)
    table = np.zeros((6, 2), "f4")
    coulis.reduce(rows, ["sum", "max"], 1, out=[table[:, 0], table[:, 1]])
    np.testing.assert_array_equal(table, np.stack([rows.sum(1), rows.max(1)], 1))
    with pytest.raises(ValueError, match="overlaps"):
        coulis.reduce(rows, ["sum", "max"], 1, out=[table[:, 0], table[:, 0]])


def test_two_inputs_are_broadcast_and_may_be_lists_and_numbers():
    a, b = np.arange(12.0).reshape(3, 4), np.arange(4.0)
    assert coulis.wmean([1.0, 2.0], [1.0, 3.0]) == 1.75
    assert coulis.dot(b, [1, 2, 3, 4]) == coulis.dot([1, 2, 3, 4], b) == 20 and coulis.dot(b, 3.0) == 18
    assert coulis.reduce(([1, 2], [3, 4]), "dot") == 11 and coulis.sum(([1, 2], [3, 4])) == 10
    np.testing.assert_array_equal(coulis.dot(b, a, 0), (a * b).sum(0))
    np.testing.assert_array_equal(coulis.dot(a, b, 1), (a * b).sum(1))
    np.testing.assert_array_equal(coulis.dot(a[:, :1], b[None, ::-1], 0), (a[:, :1] * b[::-1]).sum(0))
    np.testing.assert_array_equal(coulis.sum((a[:, 1], b[:3, None]), 0, prologue=lambda v, w: v * w), (a[:, 1] * b[:3, None]).sum(0))
    assert coulis.dot(np.ones((0, 4)), np.ones(4), 0).tolist() == [0] * 4


def test_a_default_of_a_function_keeps_its_value():
    x = np.arange(12, dtype="f4").reshape(3, 4)
    for k in (2, 3):
        own = coulis.reducer(combine=lambda a, b: a + b, identity=0, lift=lambda v, k=k: v * k, finish=lambda s, k=k: s + k, name="own")
        np.testing.assert_array_equal(coulis.reduce(x, own, 0), (x * k).sum(0) + k)
        np.testing.assert_array_equal(coulis.sum(x, 0, prologue=lambda v, k=k: v * k), (x * k).sum(0))
        scaled = coulis.normalization(map=lambda v, top, k=k: v * k + top, statistics=["max"], name="scaled")
        np.testing.assert_array_equal(scaled(x), x * k + x.max(1, keepdims=True))
    placed = coulis.reducer(combine=lambda a, b: a + b, identity=0, lift=lambda v, i, k=2: v * i * k, name="placed")
    assert coulis.reduce(x[0], placed) == (x[0] * np.arange(4) * 2).sum()
    open_ended = coulis.reducer(combine=lambda *s: s[0] + s[1], identity=0, lift=lambda *v: v[0] * len(v), name="open")
    assert coulis.reduce(x, open_ended) == x.sum()


def test_the_arrays_of_a_call_say_what_a_lift_takes():
    x, y = np.arange(4.0), np.arange(4.0, 8.0)
    product = coulis.reducer(combine=lambda a, b: a + b, identity=0, lift=lambda v, w: v * w, name="product")
    assert coulis.reduce((x, y), product) == (x * y).sum()
    assert coulis.reduce(x, product) == (x * np.arange(4)).sum()
    weighted = coulis.reducer(combine=lambda a, b: a + b, identity=0, lift=lambda v, w, i: v * w * i, name="weighted")
    assert coulis.reduce((x, y), weighted) == (x * y * np.arange(4)).sum()


def test_types_and_devices_by_their_other_names():
    x = np.arange(6, dtype="f4")
    words = {"f4": "f4", "<f8": "f8", "=f2": "f2", "d": "f8", "e": "f2", "<i8": "i8", "i4": "i4", "?": "bool", "single": "f4"}
    for word, name in words.items():
        assert coulis.sum(x, dtype=word).dtype == np.dtype(name), word
    assert coulis.reduce(x, ["sum", "max"], dtype={"sum": None, "max": "d"}).max.dtype == np.float64
    assert coulis.sum(x, device=coulis.cpu()) == coulis.sum(x, device="cpu:0") == 15
    assert coulis.layer_norm([[1.0, 3.0]], normalized_shape=[2], eps=0).tolist() == [[-1, 1]]
    np.testing.assert_array_equal(coulis.layer_norm(x, normalized_shape=np.int64(6)), coulis.layer_norm(x))
    assert coulis.nd.array([1.0], "cpu:0").device == coulis.cpu()
