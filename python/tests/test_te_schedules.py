"""Every primitive of the catalogue from Python: what it makes, that results stay, and what it refuses."""

import numpy as np
import pytest

import coulis
from coulis import te
from coulis._coulis import te as _te

RNG = np.random.default_rng(11)


WAYS = []


def way(function):
    """Marks a use of the primitive that the function is named for; whatever follows `_by_` tells two uses apart."""
    WAYS.append(function)
    return function


class Program:
    """C = A + 1 read by the sum of rows of C: two stages, of which one is a reduction."""

    def __init__(self):
        self.n, self.m = te.var("n"), te.var("m")
        self.A = te.placeholder((self.n, self.m), name="A")
        self.C = te.compute((self.n, self.m), lambda i, j: self.A[i, j] + 1, name="C")
        self.k = te.reduce_axis((0, self.m), "k")
        self.B = te.compute((self.n,), lambda i: te.sum(self.C[i, self.k], axis=self.k), name="B")
        self.s = te.create_schedule(self.B.op)

    def check(self, target="cpu"):
        for rows, cols in [(64, 48), (7, 33), (1, 1)]:
            a = RNG.integers(-3, 4, (rows, cols)).astype("float32")
            b = np.zeros(rows, "float32")
            coulis.build(self.s, [self.A, self.B], target)(a, b)
            np.testing.assert_array_equal(b, (a + 1).sum(axis=1))


@way
def split(p):
    outer, inner = p.s[p.B].split(p.k, factor=16)
    assert (outer.name, inner.name, inner.iter_type) == ("k_outer", "k_inner", "CommReduce")
    p.s[p.B].split(p.B.op.axis[0], nparts=4)


@way
def split_by_names_of_the_reference(p):
    p.s[p.B].split(parent=p.k, factor=p.n)


@way
def tile(p):
    x, y = p.C.op.axis
    names = [axis.name for axis in p.s[p.C].tile(x_parent=x, y_parent=y, x_factor=8, y_factor=4)]
    assert names == ["i_outer", "j_outer", "i_inner", "j_inner"]


@way
def fuse(p):
    fused = p.s[p.C].fuse(*p.C.op.axis)
    assert fused.name == "i_j_fused" and [a.name for a in p.s[p.C].leaf_iter_vars] == ["i_j_fused"]


@way
def reorder(p):
    i, j = p.C.op.axis
    assert p.s[p.C].reorder(j, i) is None
    assert [axis.name for axis in p.s[p.C].leaf_iter_vars] == ["j", "i"]


@way
def unroll(p):
    _, inner = p.s[p.B].split(p.k, factor=4)
    p.s[p.B].unroll(inner)


@way
def vectorize(p):
    _, inner = p.s[p.C].split(p.C.op.axis[1], factor=8)
    p.s[p.C].vectorize(inner)


@way
def parallel(p):
    p.s[p.B].parallel(p.B.op.axis[0])


@way
def compute_at(p):
    p.s[p.C].compute_at(p.s[p.B], p.B.op.axis[0])
    p.s[p.C].set_scope("local")


@way
def compute_inline(p):
    p.s[p.C].compute_inline()


@way
def compute_root(p):
    p.s[p.C].compute_at(p.s[p.B], p.B.op.axis[0])
    p.s[p.C].compute_root()


@way
def cache_read(p):
    cached = p.s.cache_read(p.A, "global", [p.C])
    assert cached.name == "A.global" and len(p.s.stages) == 3
    p.s[cached].compute_at(p.s[p.C], p.C.op.axis[0])


@way
def cache_write(p):
    cached = p.s.cache_write(p.B, "global")
    assert [axis.name for axis in cached.op.reduce_axis] == ["k"]
    assert p.s[p.B].op.reduce_axis == []


@way
def rfactor(p):
    _, inner = p.s[p.B].split(p.k, factor=16)
    part = p.s.rfactor(p.B, inner, factor_axis=1)
    assert ([a.name for a in part.op.axis], str(part.shape)) == (["i", "k_inner"], "[n, 16]")
    assert part.op.output(0) == part and part.op.num_outputs == 1


@way
def pragma(p):
    _, inner = p.s[p.B].split(p.k, factor=4)
    p.s[p.B].pragma(inner, "unroll")


@way
def set_store_predicate(p):
    p.s[p.B].set_store_predicate(te.all(p.B.op.axis[0] >= 0, p.k >= 0))


def test_a_store_predicate_may_be_a_constant():
    for value, want in [(True, 1), (False, 7)]:
        A = te.placeholder((4,), name="A")
        B = te.compute((4,), lambda i: A[i], name="B")
        s = te.create_schedule(B.op)
        s[B].set_store_predicate(te.const(value, "bool"))
        found = np.full(4, 7, "float32")
        coulis.build(s, [A, B])(np.ones(4, "float32"), found)
        assert found.tolist() == [want] * 4


@way
def double_buffer(p):
    p.s[p.C].compute_at(p.s[p.B], p.B.op.axis[0])
    p.s[p.C].set_scope("local")
    p.s[p.C].double_buffer()


@way
def join(p):
    outer, inner = p.C.op.axis
    p.s[p.C].join(outer, inner)


@way
def from_first(p):
    p.s[p.B].from_first()


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_results_stay_under_every_primitive(way):
    p = Program()
    way(p)
    p.check()
    assert f"{way.__name__.split('_by_')[0]}(" in p.s.trace
    again = te.replay(p.B.op, p.s.trace)
    assert again.trace == p.s.trace
    assert coulis.lower(again, [p.A, p.B]).script() == coulis.lower(p.s, [p.A, p.B]).script()


def test_loops_on_threads_and_finishes_of_a_grid_run_in_the_simulator():
    p = Program()
    p.s[p.C].compute_inline()
    outer, inner = p.s[p.B].split(p.B.op.axis[0], factor=4)
    p.s[p.B].bind(ivar=outer, thread_ivar=te.thread_axis("blockIdx.x"))
    p.s[p.B].bind(inner, te.thread_axis("threadIdx.y"))
    tx = te.thread_axis((0, 8), "threadIdx.x")
    _, ki = p.s[p.B].split(p.k, factor=8)
    p.s[p.B].bind(ki, tx)
    p.s[p.B].set_store_predicate(tx.var.equal(0))
    p.check("sim")
    assert "on threadIdx.x" in p.s.explain() and 's[B].bind(k_inner, "threadIdx.x")' in p.s.trace

    q = Program()
    q.s[q.C].compute_inline()
    ko, _ = q.s[q.B].split(q.k, nparts=2)
    q.s[q.B].bind(ko, te.thread_axis("blockIdx.x"))
    q.s[q.B].grid_finish("second_kernel")
    q.check("sim")


def test_rows_of_an_intermediate_are_laid_out_apart():
    A = te.placeholder((6, 8), name="A")
    C = te.compute((6, 8), lambda i, j: A[i, j] + 1, name="C")
    B = te.compute((6, 8), lambda i, j: C[i, j] * 2, name="B")
    s = te.create_schedule(B.op)
    s[C].storage_align(C.op.axis[0], factor=16, offset=1)
    a, b = RNG.random((6, 8), "float32"), np.zeros((6, 8), "float32")
    coulis.build(s, [A, B])(a, b)
    np.testing.assert_array_equal(b, (a + 1) * 2)
    assert "T.allocate([102]" in str(coulis.lower(s, [A, B]))


def test_rows_of_odd_length_are_peeled_and_their_parts_folded_as_one():
    for zipped in (False, True):
        A = te.placeholder((5, 13), name="A")
        k = te.reduce_axis((0, 13), "k")
        B = te.compute((5,), lambda i: te.sum(A[i, k], axis=k), name="B")
        s = te.create_schedule(B.op)
        words, ends = s.peel(B, k, 4)
        if zipped:
            for part in (words, ends):
                _, inner = s[part].split(s[part].op.reduce_axis[0], factor=2)
                s.rfactor(part, inner, factor_axis=1)
            s.zip(B, words, ends)
        a, b = RNG.integers(-3, 4, (5, 13)).astype("float32"), np.zeros(5, "float32")
        coulis.build(s, [A, B])(a, b)
        np.testing.assert_array_equal(b, a.sum(axis=1))
        assert "s.peel(B, k, 4)" in s.trace and ("s.zip(" in s.trace) == zipped
        assert coulis.lower(te.replay(B.op, s.trace), [A, B]).script() == coulis.lower(s, [A, B]).script()
        if zipped:
            with pytest.raises(ValueError, match="`B_words` is no stage any more: zip made it a part of `B`"):
                s[words]


@pytest.mark.parametrize("by", ["factor", "nparts"])
def test_a_trace_whose_splits_are_by_expressions_of_sizes_replays(by):
    n, m = te.size_var("n"), te.size_var("m")
    of_both = (te.max(n // 2, 1), te.min(n, m - 1) * 2, te.max(te.min(n, 8), m) - 1)
    for size in (n, n - 2, m * 2 - 3, n - (m - 1), (n + m) * 2, n * m // 3, n % 4, -n, *of_both):
        # `n` is the extent of an axis and of no shape that the program reads.
        A, P = te.placeholder((64, m), name="A", dtype="int32"), te.placeholder((n,), name="P", dtype="int32")
        k = te.reduce_axis((0, n), "k")
        B = te.compute((m,), lambda i: te.sum(A[k, i], axis=k), name="B")
        s = te.create_schedule(B.op)
        s[B].split(k, **{by: size})
        again = te.replay(B.op, s.trace)
        assert again.trace == s.trace
        assert coulis.lower(again, [P, A, B]).script() == coulis.lower(s, [P, A, B]).script()
    # Two sizes of one name are told apart, as two axes are.
    n, other = te.size_var("n"), te.size_var("n")
    largest = (te.max(other, n - 1), "T.max(n_1, n - 1)")
    for size, shown in ((n, "n"), (other, "n_1"), (other - n * 2, "n_1 - n * 2"), largest):
        A, P = te.placeholder((n, 64), name="A", dtype="int32"), te.placeholder((other,), name="P", dtype="int32")
        k = te.reduce_axis((0, other), "k")
        B = te.compute((n,), lambda i: te.sum(A[i, k], axis=k), name="B")
        s = te.create_schedule(B.op)
        s[B].split(k, **{by: size})
        assert f"{by}={shown})" in s.trace, s.trace
        again = te.replay(B.op, s.trace)
        assert again.trace == s.trace
        assert coulis.lower(again, [P, A, B]).script() == coulis.lower(s, [P, A, B]).script()
    # Nor is a size that the program has not got taken for one of its own. That of a parameter that is not read is one of `args`.
    s, foreign = te.create_schedule(B.op), te.size_var("n")
    s[B].split(k, **{by: foreign})
    with pytest.raises(ValueError, match="`n_2` is no size of the program, whose arguments are `A`, `B`"):
        te.replay(B.op, s.trace)
    Q = te.placeholder((foreign,), name="Q", dtype="int32")
    for args in ([Q, P, A, B], [P, Q], [Q]):
        again = te.replay(B.op, s.trace, args)
        assert again.trace == s.trace
        assert coulis.lower(again, [Q, P, A, B]).script() == coulis.lower(s, [Q, P, A, B]).script()
    with pytest.raises(ValueError, match="`C`"):
        te.replay(B.op, s.trace, [te.compute((n,), lambda i: A[i, 0], name="C")])
    with pytest.raises(ValueError, match="`q` is no size of the program"):
        te.replay(B.op, "s[B].split(k, factor=q - 2)")


def test_a_condition_of_an_axis_that_is_named_as_a_size_is_replays():
    n = te.size_var("n")
    A = te.placeholder((n,), name="A", dtype="int32")
    C = te.compute((n,), lambda n: A[n] * 2, name="C")
    axis = C.op.axis[0]
    for condition, shown, want in [
        (axis >= 1, "n >= 1", [7, 2, 2]),
        (n >= 3, "n_1 >= 3", [2, 2, 2]),
        (axis < n - 1, "n < n_1 - 1", [2, 2, 7]),
    ]:
        s = te.create_schedule(C.op)
        s[C].set_store_predicate(condition)
        assert f"({shown})" in s.trace
        for made in (s, te.replay(C.op, s.trace)):
            assert made.trace == s.trace
            found = np.full(3, 7, "int32")
            coulis.build(made, [A, C])(np.ones(3, "int32"), found)
            assert found.tolist() == want


def test_no_two_axes_have_one_name_in_a_trace():
    A = te.placeholder((4, 6, 8), name="A")
    k = te.reduce_axis((0, 8), "i")
    B = te.compute((4, 6), lambda i, i_1: te.sum(A[i, i_1, k], axis=k), name="B")
    for axis, shown in [(B.op.axis[0], "i"), (B.op.axis[1], "i_1"), (k, "i_2")]:
        s = te.create_schedule(B.op)
        s[B].split(axis, factor=2)
        assert f"s[B].split({shown}, factor=2)" in s.trace
        again = te.replay(B.op, s.trace)
        assert coulis.lower(again, [A, B]).script() == coulis.lower(s, [A, B]).script()


@pytest.mark.parametrize("names", [("for", "if", "x y"), ("B", "B", "B_1"), ("B_1", "B", "B"), ("x.y", "x y", "x_y"), ("1", "", "")])
def test_a_trace_names_stages_and_axes_as_it_can_be_read_back(names):
    A = te.placeholder((4, 6), name="A")
    stages = [A]
    for name in names:
        stages.append(te.compute((4, 6), (lambda t: lambda i, j: t[i, j] + 1)(stages[-1]), name=name))
    k = te.reduce_axis((0, 6), names[0])
    B = te.compute((4,), lambda i: te.sum(stages[-1][i, k], axis=k), name=names[0])
    s = te.create_schedule(B.op)
    for nth, stage in enumerate([*stages[1:], B], start=2):
        s[stage].split(stage.op.axis[0], factor=nth)
    s[B].unroll(s[B].split(k, factor=3)[1])
    s.cache_read(stages[2], "global", [stages[3]])
    again = te.replay(B.op, s.trace)
    assert again.trace == s.trace
    assert coulis.lower(again, [A, B]).script() == coulis.lower(s, [A, B]).script()


def test_a_remark_of_any_letters_is_read_back():
    A = te.placeholder((4,), name="A")
    B = te.compute((4,), lambda i: A[i] + 1, name="B")
    s = te.create_schedule(B.op)
    s[B].pragma(B.op.axis[0], "remark", 'a "b" \\ c\n\td')
    again = te.replay(B.op, s.trace)
    assert again.trace == s.trace
    assert coulis.lower(again, [A, B]).script() == coulis.lower(s, [A, B]).script()


def test_an_axis_that_an_extent_is_made_of_is_no_size():
    n = te.size_var("n")
    A = te.placeholder((n, n), name="A", dtype="int32")

    def row(i):
        k = te.reduce_axis((0, i + 1), "k")
        return te.sum(A[i, k], axis=k)

    B = te.compute((n,), row, name="B")
    C = te.compute((n,), lambda i: B[i] * 2, name="C")
    s = te.create_schedule(C.op)
    s[C].set_store_predicate(C.op.axis[0] >= 1)
    again = te.replay(C.op, s.trace)
    assert coulis.lower(again, [A, C]).script() == coulis.lower(s, [A, C]).script()
    with pytest.raises(ValueError, match="takes a condition of its axes, thread indices and sizes, and this one uses `i`"):
        te.create_schedule(C.op)[C].set_store_predicate(B.op.axis[0] >= 1)


@pytest.mark.parametrize(
    "trace, words",
    [
        ("x = 3\n", "line 1, column 5"),
        ("s[B].split(k, factor=2)\ns[B].splat(k)\n", "there is no primitive `splat`"),
        ("s[D].split(k, factor=2)\n", "there is no stage `D`; the stages are `C`, `B`"),
        ("s[B].split(k, factor=0)\n", "at least 1, got 0"),
    ],
)
def test_a_trace_that_is_none_is_refused(trace, words):
    with pytest.raises(ValueError, match=words):
        te.replay(Program().B.op, trace)


def test_a_chain_of_inlined_stages_that_is_too_long_to_be_written_out_is_refused_at_once():
    A = te.placeholder((8,), name="A")
    tensors = [A]
    for at in range(40):
        before = tensors[-1]
        tensors.append(te.compute((8,), (lambda t: lambda i: t[i] * t[i] + t[i])(before), name=f"T{at}"))
    s = te.create_schedule(tensors[-1].op)
    for tensor in tensors[1:-1]:
        s[tensor].compute_inline()
    with pytest.raises(ValueError, match="operations with `T0`, .* inlined, and legal are at most 100000"):
        coulis.lower(s, [A, tensors[-1]])


def test_rows_of_odd_length_are_copied_from_their_boundaries():
    A = te.placeholder((5, 13), name="A")
    k = te.reduce_axis((0, 13), "k")
    B = te.compute((5,), lambda i: te.sum(A[i, k], axis=k), name="B")
    C = te.compute((5, 13), lambda i, j: A[i, j] - B[i], name="C")
    s = te.create_schedule(C.op)
    s.from_boundary(A, "global", [B, C], 4)
    a, c = RNG.integers(-3, 4, (5, 13)).astype("float32"), np.zeros((5, 13), "float32")
    coulis.build(s, [A, C])(a, c)
    np.testing.assert_array_equal(c, a - a.sum(axis=1, keepdims=True))
    assert "s.from_boundary(A, " in s.trace


def test_a_quick_step_is_asked_for_where_the_reducer_has_one():
    p = Program()
    with pytest.raises(ValueError, match="in_runs"):
        p.s[p.B].in_runs(p.k)


def test_every_primitive_of_the_catalogue_is_a_method_and_tells_what_it_does():
    p = Program()
    for name, signature, summary in _te.primitives():
        owner = p.s[p.B] if signature.startswith("s[") else p.s
        method = getattr(owner, name)
        assert signature in method.about and summary in method.about and name in dir(owner)


@pytest.mark.parametrize(
    "call, kind, words",
    [
        (lambda p: p.s[p.B].split(p.k, factor=0), ValueError, "at least 1, got 0"),
        (lambda p: p.s[p.B].split(p.k), ValueError, "neither factor nor nparts"),
        (lambda p: p.s[p.B].split(p.k, factor=2, nparts=2), ValueError, "both factor and nparts"),
        (lambda p: p.s[p.B].split(p.k, 2, width=3), ValueError, "`width` is no option"),
        (lambda p: p.s[p.B].split(p.C.op.axis[1], 2), ValueError, "`j` is not an axis of `B`; its axes are `i`, `k`"),
        (lambda p: p.s[p.C].split(p.B.op.axis[0], 2), ValueError, "`i` is not an axis of `C`"),
        (lambda p: (p.s[p.B].split(p.k, 2), p.s[p.B].split(p.k, 2)), ValueError, "was split into `k_outer` and `k_inner`"),
        (lambda p: p.s[p.B].split("k", 2), ValueError, "`axis` is to be an axis"),
        (lambda p: p.s[p.B].split(p.k, 2.5), ValueError, "`factor` is to be an integer|split"),
        (lambda p: p.s[p.B].split(p.k, 2**70), ValueError, "the integer 1180591620717411303424 does not fit into int64"),
        (lambda p: p.s[p.B].parallel(p.k), ValueError, "reduce axis"),
        (lambda p: p.s[p.B].vectorize(p.k), ValueError, "reduce axis"),
        (lambda p: p.s[p.B].compute_inline(), ValueError, "compute_inline"),
        (lambda p: p.s[p.C].compute_at(p.s[p.C], p.C.op.axis[0]), ValueError, "compute_at|attached"),
        (lambda p: p.s.rfactor(p.B, p.B.op.axis[0]), ValueError, "rfactor"),
        (lambda p: p.s.cache_read(p.A, "global", [p.B]), ValueError, "cache_read"),
        (lambda p: p.s[p.C].set_scope("cache"), ValueError, "cache"),
        (lambda p: p.s[p.C].tensorize(1), AttributeError, "a stage has no primitive `tensorize`; legal are split, tile"),
        (lambda p: p.s.create_group(p.C), AttributeError, "a schedule has no primitive `create_group`"),
        (lambda p: p.s[p.A], ValueError, "there is no stage `A`; the stages are `C`, `B`"),
        (lambda p: p.s[3], TypeError, "found by a tensor or an operation, got int"),
        (lambda p: p.s[p.B].fuse(object()), TypeError, "fuse takes axes"),
        (lambda p: p.s[p.C].op.output(1), IndexError, "has 1 results, and 1 is not one"),
    ],
)
def test_a_call_without_a_meaning_is_refused_and_changes_nothing(call, kind, words):
    p = Program()
    before = p.s.explain()
    with pytest.raises(kind, match=words):
        call(p)
    if "split" not in p.s.trace:
        assert (p.s.explain(), p.s.trace) == (before, "")
    p.check()


def test_a_copy_is_scheduled_on_its_own():
    p = Program()
    other = p.s.copy()
    other[p.B].split(p.k, 4)
    assert p.s.trace == "" and "split" in other.trace
    assert [op.name for op in p.s.outputs] == ["B"] and repr(p.s[p.B]) == "Stage(B)"


def test_a_tuple_of_results_is_factored_and_cached_together():
    A = te.placeholder((8, 32), name="A")
    both = te.comm_reducer(lambda x, y: (x[0] + y[0], te.max(x[1], y[1])), lambda *t: (0, te.min_value(t[1])), "both")
    k = te.reduce_axis((0, 32), "k")
    total, top = te.compute((8,), lambda i: both((A[i, k], A[i, k]), axis=k), name="T")
    s = te.create_schedule(total.op)
    _, inner = s[total].split(k, factor=4)
    parts = s.rfactor(total, inner)
    assert [part.name for part in parts] == ["T.rf.v0", "T.rf.v1"]
    a = RNG.integers(-9, 9, (8, 32)).astype("float32")
    out = np.zeros(8, "float32"), np.zeros(8, "float32")
    coulis.build(s, [A, total, top])(a, *out)
    np.testing.assert_array_equal(out, (a.sum(axis=1), a.max(axis=1)))
    cached = te.create_schedule(total.op)
    copies = cached.cache_write([total, top], "global")
    assert len(copies) == 2


def test_conditions_and_initial_values_take_part():
    n = te.var("n")
    A, I = te.placeholder((n, 16), name="A"), te.placeholder((n,), name="I")
    k = te.reduce_axis((0, 16), "k")
    B = te.compute((n,), lambda i: te.sum(A[i, k], axis=k, where=te.all(k % 2 == 0, k < 9), init=I[i]), name="B")
    a, start, b = RNG.random((5, 16), "float32"), RNG.random(5, "float32"), np.zeros(5, "float32")
    coulis.build(te.create_schedule(B.op), [A, I, B])(a, start, b)
    coulis.testing.assert_allclose(b, start + a[:, :9:2].sum(axis=1), rtol=1e-6)


def test_a_triangle_is_summed_by_an_extent_of_the_row():
    n = te.var("n")
    A = te.placeholder((n, n), name="A")

    def row(i):
        k = te.reduce_axis((0, i + 1), "k")
        return te.sum(A[i, k], axis=k)

    B = te.compute((n,), row, name="B")
    a, b = RNG.integers(0, 9, (12, 12)).astype("float32"), np.zeros(12, "float32")
    coulis.build(te.create_schedule(B.op), [A, B])(a, b)
    np.testing.assert_array_equal(b, np.tril(a).sum(axis=1))
