"""Functions built from tensor expressions: what they compute, on which arrays, and what they refuse."""

import numpy as np
import pytest

import coulis
from coulis import te

RNG = np.random.default_rng(7)


def row_sum(dtype="float32"):
    n, m = te.var("n"), te.var("m")
    A = te.placeholder((n, m), dtype, "A")
    k = te.reduce_axis((0, m), "k")
    B = te.compute((n,), lambda i: te.sum(A[i, k], axis=k), name="B")
    return A, B, te.create_schedule(B.op)


def ones(*shape):
    return RNG.integers(-4, 5, shape).astype("float32")


def built(target="cpu"):
    A, B, s = row_sum()
    return coulis.build(s, [A, B], target)


@pytest.mark.parametrize("target", [None, "cpu", "llvm", "c", "sim"])
@pytest.mark.parametrize("shape", [(128, 128), (100, 77), (1, 1), (3, 0), (0, 3)])
def test_rows_are_summed_in_place(target, shape):
    A, B, s = row_sum()
    ko, ki = s[B].split(B.op.reduce_axis[0], factor=16)
    s.rfactor(B, ki)
    f = coulis.build(s, [A, B], target, name="rows")
    a, b = ones(*shape), np.full(shape[0], 9, "float32")
    assert f(a, b) is None
    np.testing.assert_array_equal(b, a.sum(axis=1))
    assert (f.__name__, f.parameters) == ("rows", ["A", "B"])


def test_a_factored_stage_may_be_factored_again():
    A, B, s = row_sum()
    ko, ki = s[B].split(B.op.reduce_axis[0], factor=16)
    BF = s.rfactor(B, ki)
    s.rfactor(BF, s[BF].op.reduce_axis[0])
    a, b = ones(6, 40), np.zeros(6, "float32")
    coulis.build(s, [A, B], "cpu")(a, b)
    np.testing.assert_array_equal(b, a.sum(axis=1))


def test_arrays_of_any_strides_are_read_and_written_where_they_are():
    f = built()
    a, b = ones(6, 8), np.zeros(12, "float32")
    for view in (a.T, a[::-1], a[:, ::-2], a[::2], np.broadcast_to(a[0], (4, 8))):
        out = b[: 2 * len(view) : 2] if 2 * len(view) <= 12 else np.zeros(len(view), "float32")
        f(view, out)
        np.testing.assert_array_equal(out, view.sum(axis=1))
    frozen = a.copy()
    frozen.flags.writeable = False
    f(frozen, b[:6])
    np.testing.assert_array_equal(b[:6], a.sum(axis=1))


def test_arrays_of_coulis_are_taken_beside_those_of_numpy():
    f, values = built(), ones(4, 5)
    a = coulis.nd.array(values, coulis.cpu())
    b = coulis.nd.array(np.zeros(4, "float32"))
    f(a, b)
    coulis.testing.assert_allclose(b.numpy(), values.sum(axis=1), rtol=1e-6)
    assert (a.shape, a.dtype, b.ndim, a.device, str(b.ctx)) == ((4, 5), "float32", 1, coulis.cpu(), "cpu(0)")
    assert b.asnumpy() is not b.numpy()
    out = np.zeros(4, "float32")
    f(values, out)
    f(a, out)
    np.testing.assert_array_equal(out, b.numpy())


def test_tensors_of_pytorch_are_read_and_written_where_they_are():
    torch = pytest.importorskip("torch")
    a, b = torch.arange(12.0).reshape(3, 4), torch.zeros(3)
    built()(a, b)
    assert b.tolist() == a.sum(dim=1).tolist()


def test_arrays_of_nd_are_copied_filled_and_compared():
    a = coulis.nd.empty((2, 3), "int32")
    assert a.numpy().tolist() == [[0, 0, 0]] * 2
    a[0] = 5
    b = a.copyto(coulis.cpu())
    a.copyfrom(np.ones((2, 3)))
    assert (b[0].tolist(), a.numpy().sum(), len(a), np.asarray(a).dtype) == ([5, 5, 5], 6, 2, np.int32)
    with pytest.raises(ValueError, match="has the shape"):
        a.copyfrom(np.ones(3))
    with pytest.raises(AssertionError, match="the shapes are"):
        coulis.testing.assert_allclose(a, np.ones(3))
    with pytest.raises(AssertionError, match="Not equal"):
        coulis.testing.assert_allclose(a, np.zeros((2, 3)))


GOOD = ones(4, 5), np.zeros(4, "float32")
FROZEN = np.zeros(4, "float32")
FROZEN.flags.writeable = False


@pytest.mark.parametrize(
    "args, kind, words",
    [
        ((GOOD[0],), TypeError, r"takes 2 arguments \(A, B\), got 1"),
        ((*GOOD, GOOD[1]), TypeError, r"takes 2 arguments \(A, B\), got 3"),
        ((GOOD[0].astype("float64"), GOOD[1]), ValueError, "`A`.*float32.*float64"),
        ((GOOD[0][0], GOOD[1]), ValueError, "`A`.*2 dimensions"),
        ((GOOD[0], np.zeros(5, "float32")), ValueError, "`B`.*4.*5|`B`.*5.*4|extent"),
        ((GOOD[0], np.broadcast_to(GOOD[1][:1], (4,))), ValueError, "are to lie apart"),
        ((GOOD[0], FROZEN), ValueError, "`B` is an output, and its array may not be written"),
        ((GOOD[0], 3), ValueError, "`B`.*an array"),
        ((GOOD[0], "B"), TypeError, None),
        ((GOOD[0], [1 + 2j] * 4), NotImplementedError, "complex"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(args, kind, words):
    with pytest.raises(kind, match=words):
        built()(*args)


def test_an_output_in_a_list_is_refused_since_nobody_would_see_it():
    A = te.placeholder((3,), "int64", "A")
    B = te.compute((3,), lambda i: A[i] + 1, "B")
    f = coulis.build(te.create_schedule(B.op), [A, B])
    with pytest.raises(TypeError, match="`B` is an output, and lists are copied"):
        f([1, 2, 3], [0, 0, 0])

    class Copying:
        def __array__(self, dtype=None, copy=None):
            return np.zeros(3, "int64")

    with pytest.raises(TypeError, match="`B` is an output, and an object of type `Copying` is copied"):
        f([1, 2, 3], Copying())
    written = bytearray(24)
    f([1, 2, 3], memoryview(written).cast("q"))
    assert np.frombuffer(written, "int64").tolist() == [2, 3, 4]
    b = np.zeros(3, "int64")
    f([1, 2, 3], b)
    assert b.tolist() == [2, 3, 4]


def test_arrays_of_arrow_are_read_where_they_have_no_nulls():
    pa = pytest.importorskip("pyarrow")
    A = te.placeholder((3,), "int64", "A")
    B = te.compute((3,), lambda i: A[i] + 1, "B")
    f = coulis.build(te.create_schedule(B.op), [A, B])
    b = np.zeros(3, "int64")
    f(pa.array([1, 2, 3]), b)
    assert b.tolist() == [2, 3, 4]
    with pytest.raises(ValueError, match="argument 0 has nulls, for which there is no value; fill them first"):
        f(pa.array([1, None, 3]), b)


def test_an_output_that_shares_memory_with_an_input_is_refused():
    a = ones(4, 4)
    with pytest.raises(ValueError, match="the output `B` shares memory with `A`"):
        built()(a, a[0])


def test_outputs_between_the_elements_of_another_array_are_refused_by_where_they_lie():
    n = te.var("n")
    A = te.placeholder((n,), "int32", "A")
    B = te.compute((n,), lambda i: A[i] + 1, "B")
    f = coulis.build(te.create_schedule(B.op), [A, B])
    both = np.arange(10, dtype="int32")
    want = "the output `B` shares memory with `A`, counted from the first element of each to its last"
    with pytest.raises(ValueError, match=want):
        f(both[::2], both[1::2])
    assert both.tolist() == list(range(10))
    f(both[:5], both[5:])
    assert both[5:].tolist() == [1, 2, 3, 4, 5]


def test_compact_tensors_take_row_major_arrays_only():
    A = te.placeholder((4, 4), name="A")
    B = te.compute((4, 4), lambda i, j: A[i, j] + 1, name="B")
    f = coulis.build(te.create_schedule(B.op), [A, B])
    a, b = ones(4, 4), np.zeros((4, 4), "float32")
    f(a, b)
    np.testing.assert_array_equal(b, a + 1)
    with pytest.raises(ValueError, match="`A`"):
        f(a.T, b)


def test_sizes_beyond_int32_are_refused_or_taken_by_the_wider_function():
    f = built()
    a = np.broadcast_to(np.ones((1, 1), "float32"), (2, 1 << 20))
    b = np.zeros(2, "float32")
    f(a, b)
    assert b.tolist() == [float(1 << 20)] * 2


@pytest.mark.parametrize(
    "make, kind, words",
    [
        (lambda A, B, s: coulis.build(s, [A, B], "metal"), ValueError, "there is no target `metal`; legal are"),
        (lambda A, B, s: coulis.build(s, [A, B], "cpu -mcpu=native -size=3"), ValueError, "has no option `-size=3`; legal is -arch="),
        (lambda A, B, s: coulis.build(s, [A, B], "cuda -arch=sm_1"), ValueError, "there is no architecture `sm_1`"),
        (lambda A, B, s: coulis.build(s), TypeError, "with its parameters"),
        (lambda A, B, s: coulis.build(s, [A]), ValueError, "output `B` is not among the arguments"),
        (lambda A, B, s: coulis.build(s, [B]), ValueError, "`A` is read and is not among"),
        (lambda A, B, s: coulis.build(s, [A, B, B]), ValueError, "`B` is among the arguments twice"),
        (lambda A, B, s: coulis.build(A, [A, B]), TypeError, "a schedule is built"),
        (lambda A, B, s: coulis.lower(s, [A, B, 3]), TypeError, "are tensors, got int"),
        (lambda A, B, s: coulis.lower(s, [A, B], binds={}), ValueError, "cannot be bound by hand"),
        (lambda A, B, s: coulis.build(coulis.lower(s, [A, B]), [A, B]), TypeError, "has its parameters"),
    ],
)
def test_functions_that_cannot_be_are_refused_when_they_are_built(make, kind, words):
    with pytest.raises(kind, match=words):
        make(*row_sum())


def test_what_was_lowered_is_built_too():
    A, B, s = row_sum()
    f = coulis.build(coulis.lower(s, [A, B]), target="cpu")
    a, b = ones(3, 3), np.zeros(3, "float32")
    f(a, b)
    np.testing.assert_array_equal(b, a.sum(axis=1))


def on_threads():
    A, B, s = row_sum()
    xo, xi = s[B].split(B.op.axis[0], factor=32)
    s[B].bind(xo, te.thread_axis("blockIdx.x"))
    s[B].bind(xi, te.thread_axis("threadIdx.x"))
    return A, B, s


def test_a_schedule_on_threads_runs_in_the_simulator_and_not_on_the_cpu():
    A, B, s = on_threads()
    a, b = ones(70, 5), np.zeros(70, "float32")
    coulis.build(s, [A, B], "sim")(a, b)
    np.testing.assert_array_equal(b, a.sum(axis=1))
    with pytest.raises(NotImplementedError, match="is written for blocks of threads"):
        coulis.build(s, [A, B], "cpu")


def test_the_source_for_a_gpu_needs_no_gpu_and_a_call_without_one_is_a_runtime_error():
    A, B, s = on_threads()
    f = coulis.build(s, [A, B], "cuda -arch=sm_90a")
    source = f.imported_modules[0].get_source()
    assert source == f.source("cuda") and "__global__" in source and f.imported_modules[0].type_key == "cuda"
    assert s.trace == f.trace and 's[B].bind(i_outer, "blockIdx.x")' in f.trace
    if coulis.cuda(0).exist:
        a, b = ones(70, 5), np.zeros(70, "float32")
        f(a, b)
        np.testing.assert_array_equal(b, a.sum(axis=1))
    else:
        with pytest.raises(RuntimeError, match="device"):
            f(ones(70, 5), np.zeros(70, "float32"))
        with pytest.raises(RuntimeError, match="device"):
            coulis.nd.array(ones(2, 2), coulis.cuda(0))


def test_code_and_ways_are_shown():
    A, B, s = row_sum()
    s[B].split(B.op.reduce_axis[0], factor=16)
    f = coulis.build(s, [A, B], name="rows")
    assert "void" in f.source("c") and "T.prim_func" in f.source("tir")
    assert "B: a loop nest of its own" in f.explain() and "rows on cpu" in f.explain()
    assert f.imported_modules == [] and f.trace == "k_outer, k_inner = s[B].split(k, factor=16)\n"
    with pytest.raises(ValueError, match="no source of the kind `wasm`; legal are"):
        f.source("wasm")


@pytest.mark.parametrize("kind, index", [("tpu", 0), ("cuda", -1)])
def test_devices_are_known_by_kind_and_number(kind, index):
    with pytest.raises(ValueError):
        coulis.device(kind, index)
    assert coulis.cuda(1) == coulis.device("cuda", 1) != coulis.cuda(0)
    assert (coulis.cpu().exist, coulis.cpu().device_type, coulis.cuda(3).device_id) == (True, 1, 3)


def test_calls_are_timed_as_tvm_times_them():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1, name="B")
    fn = coulis.build(te.create_schedule(B.op), [A, B], "llvm", name="more")
    a, b = coulis.nd.array(ones(64)), coulis.nd.empty(64)
    found = fn.time_evaluator(fn.entry_name, coulis.cpu(), number=3, repeat=4)(a, b)
    assert len(found.results) == 4 and 0 < found.min <= found.median <= found.max
    assert found.min <= found.mean <= found.max and found.std >= 0
    assert fn.time_evaluator("more", coulis.cpu(), min_repeat_ms=1)(a, b).mean > 0
    with pytest.raises(ValueError, match="legal is more"):
        fn.time_evaluator("main", coulis.cpu())
    with pytest.raises(ValueError, match="at least 1"):
        fn.time_evaluator("more", coulis.cpu(), number=0)


@pytest.mark.parametrize("target", ["cpu", "sim"])
@pytest.mark.parametrize("kind", ["start", "ragged"])
def test_what_memory_says_of_a_row_is_read_for_rows_that_there_are(kind, target):
    n, m = 29, 55
    A = te.placeholder((n, m), "int32", name="A")
    Z = te.placeholder((n,), "int32", name="Z")

    def row(i):
        k = te.reduce_axis((0, Z[i] if kind == "ragged" else m), "k")
        return te.sum(A[i, k], axis=k, **({} if kind == "ragged" else {"init": Z[i]}))

    C = te.compute((n,), row, name="C")
    s = te.create_schedule(C.op)
    copy = s.cache_write(C, "local")
    outer, inner = s[C].split(C.op.axis[0], factor=6)
    if target == "sim":
        s[C].bind(outer, te.thread_axis("blockIdx.x"))
    s[copy].compute_at(s[C], outer)
    s[copy].split(s[copy].op.axis[0], factor=4)
    a = np.arange(n * m, dtype=np.int32).reshape(n, m)
    z, c = np.arange(n, dtype=np.int32) % 20, np.zeros(n, np.int32)
    coulis.build(s, [A, Z, C], target)(a, z, c)
    wanted = [a[i, : z[i]].sum() if kind == "ragged" else a[i].sum() + z[i] for i in range(n)]
    assert c.tolist() == wanted


@pytest.mark.parametrize("target", ["cpu", "sim"])
def test_a_row_whose_length_memory_holds_is_summed_in_steps_longer_than_itself(target):
    for width in (3, 5, 8):
        A, Z = te.placeholder((width,), "int32", name="A"), te.placeholder((1,), "int32", name="Z")

        def row(i):
            k = te.reduce_axis((0, Z[i]), "k")  # noqa: B023
            return te.sum(A[k], axis=k)  # noqa: B023

        C = te.compute((1,), row, name="C")
        s = te.create_schedule(C.op)
        _, inner = s[C].split(s[C].op.reduce_axis[0], factor=8)
        s[C].unroll(inner)
        function = coulis.build(s, [A, Z, C], target)
        a, c = np.arange(1, width + 1, dtype=np.int32), np.zeros(1, np.int32)
        for length in range(width + 1):
            function(a, np.array([length], np.int32), c)
            assert c[0] == a[:length].sum()


@pytest.mark.parametrize("target", ["cpu", "sim"])
@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2"])
def test_floats_of_8_bits_are_folded_as_wider_ones_and_not_computed_with(dtype, target):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    values = np.array([[1.5, -2, 0.25, 3], [np.nan, 1, 2, 3], [-0.5, -8, -1, -1]]).astype(getattr(ml_dtypes, dtype))
    A, k = te.placeholder(values.shape, dtype, name="A"), te.reduce_axis((0, 4), "k")
    for fold in ("min", "max", "sum"):
        for factored in (False, True):
            B = te.compute((3,), lambda i: getattr(te, fold)(A[i, k], axis=k), name="B")  # noqa: B023
            s = te.create_schedule(B.op)
            if factored:
                outer, _ = s[B].split(B.op.reduce_axis[0], factor=2)
                s.rfactor(B, outer)
            found = np.zeros(3, values.dtype)
            coulis.build(s, [A, B], target)(values, found)
            wanted = getattr(values.astype("float64"), fold)(1).astype(values.dtype)
            np.testing.assert_array_equal(found.astype("float32"), wanted.astype("float32"))
    own = te.comm_reducer(lambda x, y: te.if_then_else(x > y, x, y), lambda t: te.const(-3.0, t), name="own")
    B = te.compute((3,), lambda i: own(A[i, k], axis=k), name="B")
    found = np.zeros(3, values.dtype)
    coulis.build(te.create_schedule(B.op), [A, B], target)(values, found)
    assert found.tolist()[::2] == [3, -0.5]
    for wrong in (lambda i: A[i, 0] + A[i, 1], lambda i: te.max(A[i, 0], A[i, 1]), lambda i: te.sum(A[i, k] * A[i, k], axis=k)):
        with pytest.raises(ValueError, match="takes float16 and wider .*converts.*got float8"):
            te.compute((3,), wrong)


def test_a_combiner_may_be_any_function_of_two_states():
    import functools
    import operator

    class Larger:
        def __call__(self, a, b):
            return te.max(a, b)

    third = functools.partial(lambda scale, a, b: a + b * scale, 1)
    x = np.arange(12, dtype="float32").reshape(3, 4)
    for combine, first, want in [(operator.add, 0, x.sum(1)), (third, 0, x.sum(1)), (Larger(), -np.inf, x.max(1)), (lambda *s: s[0] * s[1], 1, x.prod(1))]:
        own = te.comm_reducer(combine, lambda dtype, first=first: te.const(first, dtype), name="own")
        A, k = te.placeholder((3, 4), name="A"), te.reduce_axis((0, 4), name="k")
        B = te.compute((3,), lambda i: own(A[i, k], axis=k), name="B")
        found = np.zeros(3, "float32")
        coulis.build(te.create_schedule(B.op), [A, B])(x, found)
        np.testing.assert_array_equal(found, want)


def test_an_output_may_run_backwards():
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.compute((n,), lambda i: A[i] + 1, name="B")
    f = coulis.build(te.create_schedule(B.op), [A, B])
    x, out = np.arange(5, dtype=np.float32), np.zeros(5, np.float32)
    f(x, out[::-1])
    np.testing.assert_array_equal(out, x[::-1] + 1)
    with pytest.raises(ValueError, match="elements of an output are to lie apart"):
        f(x, np.lib.stride_tricks.as_strided(out, (5,), (0,)))
