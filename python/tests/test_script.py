"""Kernels as decorated Python functions: outer values, Python-time ifs, layouts, and what is refused."""

import math

import numpy as np
import pytest

import coulis
from coulis.script import ComposeLayout, R, S, TileLayout, axis, laneid, tid_in_wg, warpid
from coulis.script import tile as Tx
from coulis.script import tirx as T
from coulis.script import tirx as Words

N = 8
NAMES = {"dtype": "float32", "scale": 2.5}


def scaled(count, factor, is_shifted):
    @T.prim_func
    def scale(A: T.Buffer((count,), "float32"), B: T.Buffer((count,), "float32")):
        """Not part of the kernel."""
        for i in T.serial(count):
            if is_shifted:
                B[i] = A[i] * T.float32(factor) + T.float32(1)
            elif factor == 1:
                B[i] = A[i]
            else:
                B[i] = A[i] * T.float32(factor)

    return scale


@pytest.mark.parametrize(
    "factor, is_shifted, body",
    [
        (3, True, "A[i] * T.float32(3) + T.float32(1)"),
        (1, False, "A[i]"),
        (-0.5, False, "A[i] * T.float32(-0.5)"),
        (np.float64(2.5), np.bool_(True), "A[i] * T.float32(2.5) + T.float32(1)"),
        (np.float32(-2.5), False, "A[i] * T.float32(-2.5)"),
        (np.array(3), False, "A[i] * T.float32(3)"),
    ],
)
@pytest.mark.parametrize("target", ["cpu", "sim"])
def test_values_of_the_closure_are_put_in_and_ifs_of_them_are_decided(factor, is_shifted, body, target):
    func = scaled(5, factor, is_shifted)
    assert func.script() == (
        '@T.prim_func\ndef scale(A: T.Buffer((5,), "float32"), B: T.Buffer((5,), "float32")):\n'
        f"    for i in range(5):\n        B[i] = {body}\n"
    )
    a, b = np.arange(5, dtype="float32"), np.zeros(5, "float32")
    coulis.compile(func, target)(a, b)
    np.testing.assert_array_equal(b, a * np.float32(factor) + is_shifted)


@T.prim_func
def row_sum(A_ptr: T.handle, B_ptr: T.handle):
    n, m = T.int32(), T.int32()
    A = T.match_buffer(A_ptr, (n, m), NAMES["dtype"])
    B = T.match_buffer(B_ptr, (n,), NAMES["dtype"])
    for i in range(n):
        B[i] = T.float32(0)
        for k in range(m):
            if k % 2 == 0:
                B[i] = B[i] + A[i, k] * T.float32(NAMES["scale"] if N > 4 else 1.0)


def test_expressions_of_outer_names_are_evaluated_and_conditions_of_the_kernel_stay():
    assert "if k % 2 == 0:" in row_sum.script() and "T.float32(2.5)" in row_sum.script()
    f = coulis.compile(row_sum)
    a, b = np.ones((3, 5), "float32"), np.zeros(3, "float32")
    f(a, b)
    assert b.tolist() == [7.5] * 3 and f.parameters == ["A", "B"]
    with pytest.raises(ValueError, match="`B`"):
        f(a, np.zeros(4, "float32"))


def test_calls_of_python_functions_and_constants_of_modules_are_values():
    @Words.prim_func(private=True)
    def rounded(B: T.Buffer((math.ceil(N / 3),), "float32")):
        for i in T.serial(len("abc")):
            B[i] = T.float32(math.pi if max(N, 2) == N else 0.0)

    b = np.zeros(3, "float32")
    coulis.compile(rounded)(b)
    assert b.tolist() == [np.float32(math.pi)] * 3
    assert rounded.script().startswith("@T.prim_func\ndef rounded")


def test_calls_of_outer_values_are_made_where_the_kernel_is_defined_and_never_again():
    made = []

    def length(n):
        made.append(n)
        return n

    @T.prim_func
    def zeros(B: T.Buffer((length(4),), "float32")):
        made.append("defined")
        for i in T.serial(length(4)):
            B[i] = T.float32(0)

    # Python evaluates the annotation, and coulis after it.
    assert made == [4, 4, "defined", 4]
    f = coulis.compile(zeros)
    f(np.ones(4, "float32"))
    assert len(made) == 4 and "append" not in zeros.script()


def test_names_in_annotations_are_those_around_the_function():
    @T.prim_func
    def count(B: T.Buffer((N,), "int32")):
        N = T.int32(3)  # noqa: F841
        for i in T.serial(8):
            B[i] = N

    b = np.zeros(8, "int32")
    coulis.compile(count)(b)
    assert b.tolist() == [3] * 8


def test_layouts_of_the_closure_print_as_they_are_written():
    lanes = TileLayout(S[32 : 1 @ laneid])
    total = TileLayout(S[1 : 1] + R[32 : 1 @ laneid])

    @T.prim_func
    def warp_sum(A_ptr: T.handle, B_ptr: T.handle):
        A = T.match_buffer(A_ptr, (32,), "float32")
        B = T.match_buffer(B_ptr, (1,), "float32")
        T.device_entry()
        T.cta_id([1])
        lane = T.lane_id([32])
        part = T.alloc_buffer([32], "float32", scope="local", layout=lanes)
        whole = T.alloc_buffer([1], "float32", scope="local", layout=total)
        part.local(1)[0] = A[lane]
        Tx.warp.sum(whole, part, axes=(0,), accum=False)
        if lane == 0:
            B[0] = whole.local(1)[0]

    text = warp_sum.script()
    assert "layout=TileLayout(S[32 : 1 @ laneid])" in text
    assert "layout=TileLayout(S[1] + R[32 : 1 @ laneid])" in text


@pytest.mark.parametrize(
    "layout, text",
    [
        (TileLayout(S[4, 8]), "TileLayout(S[(4, 8)])"),
        (TileLayout(S[(4, 8)]), "TileLayout(S[(4, 8)])"),
        (TileLayout(S[8]), "TileLayout(S[8])"),
        (TileLayout(S[(8, 2) : (4 @ laneid, 1)]), "TileLayout(S[(8, 2) : (4 @ laneid, 1)])"),
        (
            TileLayout(S[32 : 1 @ laneid] + R[2 : 4 @ warpid] + 5 @ warpid + 64),
            "TileLayout(S[32 : 1 @ laneid] + R[2 : 4 @ warpid] + 5 @ warpid + 64)",
        ),
        (TileLayout(S[8:"laneid"]), "TileLayout(S[8 : 'laneid'])"),
        (TileLayout(S[4 : 1 @ axis("bx")]), "TileLayout(S[4 : 1 @ bx])"),
        (ComposeLayout(2, 3, 3, TileLayout(S[64, 64])), "ComposeLayout(2, 3, 3, TileLayout(S[(64, 64)]))"),
    ],
)
def test_layouts_are_objects_that_print_what_was_written(layout, text):
    assert repr(layout) == text and layout == eval(repr(layout), {**globals(), "bx": axis("bx")})
    assert len({layout, layout}) == 1


def test_a_layout_has_parts():
    layout = TileLayout(S[(4, 8) : (8 @ tid_in_wg, 1)] + R[2 : 1 @ warpid] + 3 @ warpid)
    assert (layout.shard.extents, layout.replica.extents, repr(layout.offset)) == ((4, 8), (2,), "[3 @ warpid]")
    assert TileLayout(S[8]).replica is None


@pytest.mark.parametrize(
    "make, kind, words",
    [
        (lambda: TileLayout(R[2 : 1 @ laneid]), TypeError, "begins with S"),
        (lambda: TileLayout(4), TypeError, "begins with S"),
        (lambda: S[(4, 8) : 1], ValueError, "takes as many steps, got 1"),
        (lambda: S["a"], TypeError, "extents of S are integers"),
        (lambda: S[4:1.5], TypeError, "steps of S are integers"),
        (lambda: "a" @ laneid, TypeError, "a step along `laneid` is an integer"),
        (lambda: ComposeLayout(1, 2, 3, S[8]), TypeError, "a TileLayout is swizzled"),
        (lambda: axis("a b"), ValueError, "is an identifier"),
    ],
)
def test_layouts_without_a_meaning_are_refused(make, kind, words):
    with pytest.raises(kind, match=words):
        make()


def twice(x):
    return 2 * x


def defined(kind):
    thing, unknown_table = object(), {}

    if kind == "object":

        @T.prim_func
        def kernel(B: T.Buffer((4,), "float32")):
            for i in T.serial(thing):
                B[i] = T.float32(0)

    elif kind == "name":

        @T.prim_func
        def kernel(B: T.Buffer((4,), "float32")):
            B[0] = A[0]  # noqa: F821

    elif kind == "word":

        @T.prim_func
        def kernel(B: T.Buffer((4,), "float32")):
            B[0] = T.no_such_word(1)

    elif kind == "statement":

        @T.prim_func
        def kernel(B: T.Buffer((4,), "float32")):
            while True:
                B[0] = T.float32(1)

    elif kind == "lookup":

        @T.prim_func
        def kernel(B: T.Buffer((4,), "float32")):
            B[0] = T.float32(unknown_table["scale"])

    elif kind == "call":

        @T.prim_func
        def kernel(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
            B[0] = twice(A[0])

    elif kind == "builtin":

        @T.prim_func
        def kernel(A: T.Buffer((4,), f"float{32}"), B: T.Buffer((4,), "float32")):
            B[0] = abs(A[0])

    elif kind == "value":

        @T.prim_func
        def kernel(B: T.Buffer((4,), "float32")):
            twice(2)
            B[0] = T.float32(0)

    elif kind == "default":

        @T.prim_func
        def kernel(B: T.Buffer((4,), "float32") = None):
            B[0] = T.float32(0)

    return kernel


@pytest.mark.parametrize(
    "kind, error, words",
    [
        ("object", TypeError, "legal values from outside are numbers, bools, strings"),
        ("name", ValueError, "nothing named `A` is in scope.*\n.*which was read as\n.*1 | @T.prim_func"),
        ("word", ValueError, "no_such_word"),
        ("statement", ValueError, "(?i)while"),
        ("lookup", KeyError, "scale"),
        ("call", TypeError, r"`twice` in `kernel` is a function of Python.*`twice\(A\[0\]\)` gives it what the kernel computes"),
        ("builtin", TypeError, r"`abs` in `kernel` is a function of Python.*legal is T.abs"),
        ("value", TypeError, r"line 3 of `kernel`, `twice\(2\)`, is the value 4 and no statement"),
        ("default", TypeError, "have neither defaults nor stars"),
    ],
)
def test_functions_without_a_meaning_are_refused_where_they_are_defined(kind, error, words):
    with pytest.raises(error, match=words):
        defined(kind)


def test_what_is_no_function_of_a_file_is_refused():
    with pytest.raises(TypeError, match="reads a Python function, got int"):
        T.prim_func(3)
    namespace = {"T": T}
    with pytest.raises(ValueError, match="the source of `f` is not to be had"):
        exec("@T.prim_func\ndef f(B: T.Buffer((4,), 'float32')):\n    B[0] = T.float32(1)\n", namespace)
    with pytest.raises(TypeError, match="is the text of a kernel"):
        row_sum(1, 2)


TEXT = """
@T.prim_func
def count(B: T.Buffer((4,), "int32"), start: T.int32):
    for i in T.parallel(4):
        B[i] = start + i
"""


def test_a_function_of_a_text_with_several_is_taken_by_its_name():
    both, b = TEXT + TEXT.replace("count", "twice").replace("start + i", "start + i + i"), np.zeros(4, "int32")
    for name, want in [("count", [5, 6, 7, 8]), ("twice", [5, 7, 9, 11])]:
        f = coulis.compile(both, name=name)
        f(b, 5)
        assert (f.__name__, b.tolist()) == (name, want)


def test_texts_are_compiled_as_they_are_and_take_integers():
    f = coulis.compile(TEXT)
    b = np.zeros(4, "int32")
    f(b, 5)
    assert b.tolist() == [5, 6, 7, 8]
    assert (f.__name__, f.parameters, f.trace) == ("count", ["B", "start"], "")
    assert "void" in f.source() and "T.parallel(4)" in f.source("tir") and "count on cpu" in f.explain()
    with pytest.raises(TypeError, match=r"takes 2 arguments \(B, start\), got 1"):
        f(b)
    with pytest.raises(ValueError, match="an integer"):
        f(b, b)
    with pytest.raises(ValueError, match="does not fit into int64"):
        f(b, 1 << 70)


@pytest.mark.parametrize(
    "text, options, kind, words",
    [
        (TEXT, {"target": "metal"}, ValueError, "there is no target `metal`"),
        (TEXT, {"target": "cpu", "arch": "sm_90"}, ValueError, "has no architecture"),
        (TEXT + TEXT.replace("count", "other"), {}, ValueError, "got 2, of which one is to be named: count, other"),
        (TEXT + TEXT.replace("count", "other"), {"name": "count_"}, ValueError, "no function `count_`; legal are count, other"),
        (TEXT + TEXT, {"name": "count"}, ValueError, "has 2 functions `count`"),
        (TEXT, {"name": 3}, TypeError, None),
        ("x = 1", {}, ValueError, None),
        (3, {}, TypeError, "a text or a function under @T.prim_func is compiled, got int"),
    ],
)
def test_texts_without_a_meaning_are_refused(text, options, kind, words):
    with pytest.raises(kind, match=words):
        coulis.compile(text, **options)


def test_a_class_of_kernels_is_a_module():
    from coulis.script import ir as I

    n = 8

    @I.ir_module
    class Pair:
        @T.prim_func
        def double(A: T.Buffer((n,), "float32"), B: T.Buffer((n,), "float32")):
            for i in T.serial(n):
                B[i] = A[i] * T.float32(2)

        @T.prim_func
        def negate(A: T.Buffer((n,), "float32"), B: T.Buffer((n,), "float32")):
            for i in T.serial(n):
                B[i] = T.float32(0) - A[i]

    a, b = np.arange(n, dtype="float32"), np.zeros(n, "float32")
    coulis.compile(Pair["negate"])(a, b)
    np.testing.assert_array_equal(b, -a)
    assert list(Pair) == ["double", "negate"]
    with pytest.raises(ValueError, match="name one of double, negate"):
        coulis.compile(Pair)
    with pytest.raises(KeyError, match="legal are double, negate"):
        Pair["triple"]
    coulis.compile(I.ir_module(type("One", (), {"double": Pair["double"]})))(a, b)
    np.testing.assert_array_equal(b, 2 * a)
    with pytest.raises(TypeError, match="no kernel"):
        I.ir_module(type("Odd", (), {"f": lambda self: 0}))
