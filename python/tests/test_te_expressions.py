"""Expressions: operators, types, functions, and every mistake that is found while they are built."""

import math

import numpy as np
import pytest

import coulis
from coulis import te

i, j = te.var("i"), te.var("j")
x, d = te.var("x", "float32"), te.var("d", "float64")
b = te.var("b", "bool")


@pytest.mark.parametrize(
    "expr, text, dtype",
    [
        (i + 1, "i + 1", "int32"),
        (1 + i, "1 + i", "int32"),
        (i - j, "i - j", "int32"),
        (2 * i, "2 * i", "int32"),
        (i // 2, "i // 2", "int32"),
        (i % 2, "i % 2", "int32"),
        (x / 3, "x / T.float32(3)", "float32"),
        (i * x, 'T.Cast("float32", i) * x', "float32"),
        (x + 0.5, "x + T.float32(0.5)", "float32"),
        (d + 0.1, "d + T.float64(0.10000000000000001)", "float64"),
        (-x, "x * T.float32(-1)", "float32"),
        (i < j, "i < j", "bool"),
        (i >= 3, "i >= 3", "bool"),
        (i == j, "i == j", "bool"),
        (i.equal(0), "i == 0", "bool"),
        ((i < j) & b, "i < j and b", "bool"),
        (~b, "not b", "bool"),
        (te.all(b, i < 1, j < 1), "b and i < 1 and j < 1", "bool"),
        (te.any([b, i < 1]), "b or i < 1", "bool"),
        (x.astype("int64"), 'T.Cast("int64", x)', "int64"),
        (te.cast("float16", 1), "T.float16(1)", "float16"),
        (te.exp(x), "T.exp(x)", "float32"),
        (te.power(x, 2), "T.pow(x, T.float32(2))", "float32"),
        (te.isnan(x), "T.isnan(x)", "bool"),
        (te.isnan(i), "T.bool(False)", "bool"),
        (te.floordiv(i, 3), "i // 3", "int32"),
        (te.truncmod(i, 3), "T.truncmod(i, 3)", "int32"),
        (te.if_then_else(i < 1, x, 0.0), "T.if_then_else(i < 1, x, T.float32(0))", "float32"),
        (te.select(b, i, 7), "T.Select(b, i, 7)", "int32"),
        (te.const(3, "int8"), "T.int8(3)", "int8"),
        (te.const(True), "T.bool(True)", "bool"),
        (te.max_value("int16"), "T.int16(32767)", "int16"),
        (te.min_value("float32"), "T.float32(-3.4028234663852886e+38)", "float32"),
        (x + np.float32(2), "x + T.float32(2)", "float32"),
        (i + np.int64(2), 'T.Cast("int64", i) + T.int64(2)', "int64"),
        (i + (1 << 40), 'T.Cast("int64", i) + T.int64(1099511627776)', "int64"),
    ],
)
def test_an_expression_prints_and_has_the_type_that_holds_its_operands(expr, text, dtype):
    assert (str(expr), expr.dtype) == (text, dtype)


@pytest.mark.parametrize(
    "make, kind, words",
    [
        (lambda: i / 2, TypeError, "`/` of integers"),
        (lambda: x % 2.0, ValueError, "`%` takes integers, got float32"),
        (lambda: b + b, ValueError, "`+` takes numbers; cast it, got bool"),
        (lambda: te.exp(i), ValueError, "`exp` takes floats; cast it, got int32"),
        (lambda: te.all(i), ValueError, "`and` takes bools, got int32"),
        (lambda: te.all(b, i), ValueError, "`and` takes bools, got int32"),
        (lambda: te.all(), TypeError, "at least one condition"),
        (lambda: ~x, ValueError, "`not` takes a bool or an integer, got float32"),
        (lambda: i + "1", TypeError, "unsupported operand"),
        (lambda: te.const(1, "float33"), TypeError, "`float33` names no element type"),
        (lambda: te.const(300, "int8"), ValueError, "the constant is 300, which int8 does not hold"),
        (lambda: te.const([1]), TypeError, "an expression, an axis or a number is wanted, got list"),
        (lambda: te.compute((2,), lambda i: np.ones(2) * te.exp(1.0)), TypeError, "a number is wanted, got ndarray"),
        (lambda: te.const(1 << 70), ValueError, "the integer 1180591620717411303424 does not fit into int64"),
        (lambda: bool(i < j), ValueError, "neither true nor false"),
        (lambda: i + (1 << 70), ValueError, "does not fit into int64"),
        (lambda: x.name and (x + 1).name, AttributeError, "only a variable has a name"),
    ],
)
def test_operands_without_a_meaning_are_refused(make, kind, words):
    with pytest.raises(kind) as error:
        make()
    assert words in str(error.value)


def test_powers_are_products_or_calls_and_an_expression_has_no_value_yet():
    assert repr(x**1) == "x" and repr(x**3) == "x * x * x"
    assert "pow" in repr(x**0.5) and "pow" in repr(2.0**x)
    a = np.array([1.0, -2.0, 3.0])
    assert coulis.reduce(a, "sum", prologue=lambda v: abs(v) ** 2) == 14
    with pytest.raises(TypeError, match="te.sqrt, te.exp and their like"):
        math.sqrt(x)
    assert float(te.const(2, "int32")) == 2.0


def test_equal_expressions_are_the_same_and_serve_as_keys():
    assert i + 1 == i + 1 and i + 1 != i + 2
    assert {i: "i", j: "j"}[i] == "i"
    assert (i + 1).same_as(i + 1)


def tensor(*extents, dtype="float32", name="A"):
    return te.placeholder(extents, dtype, name)


def test_a_tensor_knows_its_shape_and_is_read_in_parts():
    n = te.var("n")
    A = tensor(n, 4, 2)
    assert (A.ndim, A.dtype, A.name, str(A.shape)) == (3, "float32", "A", "[n, 4, 2]")
    assert str(A[i, j, 1]) == str(A[i][j][1]) == str(A(i, j, 1)) == "A[i, j, 1]"
    assert str(A[i][j][1] + 1) == "A[i, j, 1] + T.float32(1)"
    assert A == A and A != tensor(n) and len({A, A}) == 1
    scalar = te.placeholder((), name="s")
    assert str(scalar() + 1) == "s[()] + T.float32(1)"


def test_axes_of_a_compute_take_the_names_of_the_lambda():
    A = tensor(3, 4)
    named = te.compute((3, 4), lambda row, col: A[row, col], name="C")
    assert [axis.name for axis in named.op.axis] == ["row", "col"]
    rest = te.compute((3, 4), lambda *index: A(*index), name="C")
    assert [axis.name for axis in rest.op.axis] == ["i0", "i1"]
    part = te.compute((3, 4), lambda row, *index: A(row, *index), name="C")
    assert [axis.name for axis in part.op.axis] == ["row", "i0"]
    assert named.op.axis[0].iter_type == "DataPar"
    assert (str(named.op.axis[1].dom), named.op.reduce_axis) == ("T.Range(0, 4)", [])


def test_a_tuple_body_makes_a_tuple_of_tensors():
    A = tensor(8)
    lo, hi = te.compute((8,), lambda q: (A[q] - 1, A[q] + 1), name="C")
    assert (lo.name, hi.name, hi.value_index, lo.op == hi.op) == ("C.v0", "C.v1", 1, True)


def reduce_of(body, extent=8, axes=None):
    A = tensor(8, 8)
    k = te.reduce_axis((0, extent), "k")
    return te.compute((8,), lambda q: body(A, q, k), name="B")


@pytest.mark.parametrize(
    "body, kind, words",
    [
        (lambda A, q, k: te.sum(A[q, k], axis=k) + 1, ValueError, "is to be the whole body of a compute"),
        (lambda A, q, k: te.exp(te.sum(A[q, k], axis=k)), ValueError, "is to be the whole body of a compute"),
        (lambda A, q, k: te.sum(te.sum(A[q, k], axis=k), axis=k), ValueError, "is to be the whole body"),
        (lambda A, q, k: (te.sum(A[q, k], axis=k), A[q, q]), ValueError, "either all are reductions or none"),
        (
            lambda A, q, k: (te.sum(A[q, k], axis=k), te.max(A[q, k], axis=k)),
            ValueError,
            "fold them with one tuple reducer",
        ),
        (lambda A, q, k: te.sum(A[q, k], axis=q), TypeError, "folds over axes of te.reduce_axis"),
        (lambda A, q, k: te.sum(A[q, k], axis=[k, k]), ValueError, "the reduce axis `k` twice"),
        (lambda A, q, k: te.sum(A[q, k], axis=te.thread_axis("threadIdx.x")), ValueError, "is a thread axis"),
        (lambda A, q, k: A[q, k], ValueError, "reads the axis `k`"),
        (lambda A, q, k: A[q], IndexError, "takes 2 indices, got 1"),
        (lambda A, q, k: A[q, k, k], IndexError, "`A` takes 2 indices, got 3"),
        (lambda A, q, k: A[q, 1:2], TypeError, "slices have no meaning"),
        (lambda A, q, k: A[q, 0.5], TypeError, "an index is an integer expression"),
        (lambda A, q, k: te.sum(A[q, k], axis=k, where=A[q, k]), ValueError, "is to be bool, got float32"),
        (lambda A, q, k: te.sum(A[q, k], axis=k, init=(0.0, 1.0)), ValueError, "takes as many initial values"),
        (lambda A, q, k: te.sum(A[q, k], axis=k, init=A[q, k]), ValueError, "initial value 0"),
        (lambda A, q, k: te.sum(A[q, k]), TypeError, "the axes to fold over"),
        (lambda A, q, k: te.all(A[q, k]), ValueError, "takes bools, got float32"),
        (lambda A, q, k: None, TypeError, "an expression, an axis or a number is wanted"),
        (lambda A, q, k: 1 // 0, ZeroDivisionError, "by zero"),
    ],
)
def test_a_body_without_a_meaning_is_refused_when_it_is_built(body, kind, words):
    with pytest.raises(kind) as error:
        reduce_of(body)
    assert words in str(error.value)


def test_an_unlisted_or_shared_axis_is_refused():
    A = tensor(8)
    k = te.reduce_axis((0, 8), "k")
    B = te.compute((), lambda: te.sum(A[k], axis=k), name="B")
    C = te.compute((), lambda: te.sum(A[k] * B(), axis=k), name="C")
    with pytest.raises(ValueError, match="reduce axis `k` belongs to `B` and to `C`"):
        te.create_schedule(C.op)


@pytest.mark.parametrize(
    "make, kind, words",
    [
        (lambda: te.placeholder((-1,)), ValueError, "at least 0, got -1"),
        (lambda: te.placeholder((2.5,)), ValueError, "is to be an integer"),
        (lambda: te.placeholder((4,), "float33"), TypeError, "`float33` names no element type"),
        (lambda: te.compute((4, 4), lambda q: 1.0), ValueError, "as many axis names, got 1"),
        (lambda: te.compute((4,), lambda q=1: 1.0), TypeError, "one index a dimension"),
        (lambda: te.reduce_axis(4), TypeError, r"\(min, end\)"),
        (lambda: te.thread_axis("threadIdx.w"), ValueError, "legal are blockIdx.x"),
        (lambda: te.thread_axis(), ValueError, "has a tag"),
        (lambda: te.comm_reducer(lambda q: q, lambda t: 0), TypeError, "takes 1 arguments without a default; legal is 2"),
        (lambda: te.create_schedule(3), TypeError, "is of operations"),
        (lambda: te.create_schedule(tensor(3).op), ValueError, "is an input"),
    ],
)
def test_shapes_axes_and_schedules_refuse_what_has_no_meaning(make, kind, words):
    with pytest.raises(kind, match=words):
        make()


def test_a_reducer_of_plain_values_is_an_expression():
    product = te.comm_reducer(lambda p, q: p * q, lambda t: 1, name="product")
    assert str(product(x, 2.0)) == "x * T.float32(2)"
    assert str(te.sum(i, j)) == "i + j"
    assert te.max(x, 1.0).dtype == "float32"


def test_a_tuple_reducer_names_its_states_and_gives_a_tuple():
    def fcombine(lhs, rhs):
        left = lhs[1] >= rhs[1]
        return te.select(left, lhs[0], rhs[0]), te.select(left, lhs[1], rhs[1])

    argmax = te.comm_reducer(fcombine, lambda *t: (te.const(-1, t[0]), te.min_value(t[-1])), name="argmax")
    A = tensor(4, 4)
    k = te.reduce_axis((0, 4), "k")
    idx, val = te.compute((4,), lambda q: argmax((k.var, A[q, k]), axis=k), name="T")
    assert (idx.dtype, val.dtype) == ("int32", "float32")
    assert "lambda lhs_0, lhs_1, rhs_0, rhs_1" in str(idx.op.body)
    with pytest.raises(ValueError, match="the identity of `argmax` is to give one value a source, of which there are 1, got 2"):
        te.compute((4,), lambda q: argmax((A[q, k],), axis=k), name="T")


def test_an_argmax_that_gives_nan_its_place_gives_the_same_under_every_schedule():
    def fcombine(x, y):
        left = te.any(te.isnan(x[1]), x[1] >= y[1])
        return te.select(left, x[0], y[0]), te.select(left, x[1], y[1])

    argmax = te.comm_reducer(fcombine, lambda *t: (te.const(-1, t[0]), te.min_value(t[-1])), name="argmax")
    values = np.array([[1, 2, np.nan, 5, 4, 9, np.nan, 3]], "float32")
    for way in (None, 0, 1, "reorder"):
        A, k = te.placeholder((1, 8), name="A"), te.reduce_axis((0, 8), "k")
        T = te.compute((1,), lambda i: argmax((k.var, A[i, k]), axis=k), name="T")
        s = te.create_schedule(T[0].op)
        if way is not None:
            parts = s[T[0]].split(s[T[0]].op.reduce_axis[0], factor=4)
            if way == "reorder":
                s[T[0]].reorder(*parts[::-1])
            else:
                s.rfactor(T[0], parts[way])
        place, value = np.zeros(1, "int32"), np.zeros(1, "float32")
        coulis.build(s, [A, *T])(values, place, value)
        assert place[0] == 2 and np.isnan(value[0]), way


@pytest.mark.parametrize(
    "identity, kind, words",
    [
        (lambda t: t, TypeError, "the identity of `own` takes 1 arguments without a default; legal is 2"),
        (lambda: 0, TypeError, "the identity of `own` takes 0 arguments without a default; legal is 2"),
        (0, TypeError, "the identity of `own` is to be a function, got an object of type `int`"),
        (lambda *t: 0, ValueError, "the identity of `own` is to give one value a source, of which there are 2, got 1"),
        (lambda *t: (0, 0, 0), ValueError, "the identity of `own` is to give one value a source, of which there are 2, got 3"),
        (lambda *t: (0, "0"), TypeError, "identity 1 of reducer `own` is to be a number, got an object of type `str`; legal is a number, or a "
         "constant of float32 as te.const and te.min_value give"),
        (lambda *t: (None, 0), TypeError, "identity 0 of reducer `own` is to be a number, got an object of type `NoneType`; legal is"),
        (lambda *t: (0, te.var("n")), ValueError, "identity 1 of reducer `own` is `n`, which is no constant; legal is a number, or a"),
        (lambda *t: (0, te.placeholder((4,), name="Z")[1] + 1), ValueError, r"identity 1 of reducer `own` is `Z\[1\] \+ .*`, which is no constant"),
        (lambda *t: (te.const(0, "int64"), 0), ValueError, "identity 0 of reducer `own` is a constant of int64, and its source is of "
         "float32; legal is a number, or a constant of float32"),
    ],
)
def test_the_identity_takes_and_gives_one_value_a_source(identity, kind, words):
    A, k = te.placeholder((4,), name="A"), te.reduce_axis((0, 4), "k")
    own = te.comm_reducer(lambda p, q: (p[0] + q[0], p[1] + q[1]), identity, name="own")
    with pytest.raises(kind, match=words):
        own((A[k], A[k]), axis=k)


def test_an_argmax_of_integers_may_start_from_the_least_one_but_not_from_another():
    A, k = te.placeholder((4,), "int32", name="A"), te.reduce_axis((0, 4), "k")

    def greater(p, q):
        return tuple(te.if_then_else(p[1] >= q[1], p[i], q[i]) for i in range(2))

    tvms = te.comm_reducer(greater, lambda *t: (te.const(-1, t[0]), te.min_value(t[1])), name="tvms")
    place, value = te.compute((1,), lambda i: tvms((k.var, A[k]), axis=k), name="T")
    run = coulis.build(te.create_schedule(place.op), [A, place, value], "cpu")
    outs = np.zeros(1, "int32"), np.zeros(1, "int32")
    run(np.array([3, -7, 9, 9], "int32"), *outs)
    assert [int(out[0]) for out in outs] == [2, 9]
    from_zero = te.comm_reducer(greater, lambda *t: (te.const(-1, t[0]), te.const(0, t[1])), name="from_zero")
    with pytest.raises(ValueError, match=r"`from_zero` is refuted: .*which gives \(-1, 0\)"):
        from_zero((k.var, A[k]), axis=k)


def test_the_identity_may_be_a_number():
    total = te.comm_reducer(lambda p, q: p + q, lambda t: 0, name="total")
    body = reduce_of(lambda A, q, k: total(A[q, k], axis=k)).op.body
    assert "[T.float32(0)]" in str(body)


def test_a_reducer_that_does_not_keep_its_claims_is_refused_with_a_counterexample():
    fold = lambda reducer: lambda A, q, k: reducer(A[q, k], axis=k)  # noqa: E731
    minus = te.comm_reducer(lambda p, q: p - q, lambda t: 0, name="minus")
    with pytest.raises(ValueError, match=r"`minus` is refuted: .*identity, a\) equals a.* fails for a = "):
        reduce_of(fold(minus))
    largest = te.comm_reducer(lambda p, q: te.max(p, q), lambda t: 0, name="largest")
    with pytest.raises(ValueError, match="`largest` is refuted"):
        reduce_of(fold(largest))
    mean = te.comm_reducer(lambda p, q: te.if_then_else(p == 0.0, q, te.if_then_else(q == 0.0, p, (p + q) / 2.0)), lambda t: 0, name="mean")
    with pytest.raises(ValueError, match="combine is associative"):
        reduce_of(fold(mean))
    far = te.comm_reducer(lambda p, q: p + q, lambda t: 1e300, name="far")
    with pytest.raises(ValueError, match="identity 0 of reducer `far` is .*, which float32 does not hold"):
        reduce_of(fold(far))
    shift = te.comm_reducer(lambda p, q: p + q + te.var("n", "float32") * 0.0, lambda t: 0, name="shift")
    assert reduce_of(fold(shift)) is not None, "what uses its surroundings is taken at its word"


def test_versions_of_names_are_the_same_functions():
    assert coulis.tir.const is te.const and coulis.tir.if_then_else is te.if_then_else


def grown(step, times):
    expr = x
    for _ in range(times):
        expr = step(expr)
    return expr


@pytest.mark.parametrize(
    "step",
    [
        lambda e: e + 1,
        lambda e: e + e,
        lambda e: -e,
        te.exp,
        lambda e: te.cast("float64", e).astype("float32"),
        lambda e: te.if_then_else(e < 1, e, 0.0),
        lambda e: tensor(4, 4)[0, e.astype("int32")],
        lambda e: tensor(4, 4)[e.astype("int32")][0],
        lambda e: te.maximum(e, 1.0),
    ],
)
def test_an_expression_that_outgrows_every_program_is_refused(step):
    with pytest.raises(ValueError, match="compute a part of it in a tensor of its own"):
        grown(step, 100_000)
    wide = grown(lambda e: e + 1, 990)
    B = te.compute((4,), lambda q: wide * 0, name="B")
    assert str(wide).startswith("x + T.float32(1)") and B.name == "B"


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32", "int64", "uint64", "bool"])
def test_bits_are_turned_over(dtype):
    x = np.array([0, 1, 1, 0] if dtype == "bool" else [0, 1, 100, 127], dtype)
    A = te.placeholder((4,), dtype, name="A")
    B = te.compute((4,), lambda i: ~A[i], name="B")
    y = np.zeros(4, dtype)
    coulis.build(te.create_schedule(B.op), [A, B], "cpu")(x, y)
    np.testing.assert_array_equal(y, ~x)


def test_lanes_that_are_a_step_apart_which_an_element_tells():
    n = 16
    for dtype in ("int64", "int32"):
        A, C = te.placeholder((1,), dtype, name="A"), te.placeholder((1,), dtype, name="C")
        B = te.compute((n,), lambda i: A[0] * te.cast(dtype, i) + C[0], name="B")
        s = te.create_schedule(B.op)
        s[B].vectorize(s[B].split(B.op.axis[0], factor=8)[1])
        found = np.zeros(n, dtype)
        coulis.build(s, [A, C, B])(np.array([5], dtype), np.array([3], dtype), found)
        np.testing.assert_array_equal(found, 5 * np.arange(n) + 3)


def test_a_lift_scales_positions_by_an_element_that_all_of_a_row_share():
    moment = coulis.reducer(combine=lambda a, b: a + b, identity=0, lift=lambda x, i: x * i, name="moment")
    shared = np.broadcast_to(np.array(1), (4, 2))
    np.testing.assert_array_equal(coulis.reduce(shared, moment, 0), [6, 6])


@pytest.mark.parametrize(
    "named, dtype", [(float, "float64"), ("f4", "float32"), (np.int16, "int16"), ("double", "float64")]
)
def test_types_have_the_names_that_reductions_take(named, dtype):
    assert te.placeholder((3,), named, "A").dtype == te.const(1, named).dtype == dtype
    assert coulis.reduce(np.ones(3), "max", dtype=named).dtype == dtype
    for make in (te.placeholder, lambda shape, dtype: coulis.sum(np.ones(shape), dtype=dtype)):
        with pytest.raises(TypeError, match="`decimal` names no element type; legal element types are"):
            make((3,), "decimal")


@pytest.mark.parametrize("word", ["int", "uint", "float"])
def test_words_that_are_wider_in_numpy_than_in_tvm_name_no_type(word):
    for make in (lambda: te.placeholder((3,), word), lambda: te.const(1, word), lambda: te.var("n", word)):
        with pytest.raises(TypeError, match=f"`{word}` has 32 bits in TVM and 64 in NumPy; legal are `{word}32`"):
            make()
