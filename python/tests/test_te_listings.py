"""The listings of the tutorial, made in Python, are the frozen ones to the letter."""

import pathlib

import numpy as np
import pytest

import coulis
from coulis import te

FROZEN = pathlib.Path(__file__).parents[2] / "tests" / "files" / "tutorial.txt"


def frozen(number):
    sections = FROZEN.read_text().split("== ")
    return next(s.split("\n", 1)[1] for s in sections if s.startswith(f"listing {number}\n"))


def row_sum():
    n, m = te.var("n"), te.var("m")
    A = te.placeholder((n, m), name="A")
    k = te.reduce_axis((0, m), "k")
    B = te.compute((n,), lambda i: te.sum(A[i, k], axis=k), name="B")
    return A, B, te.create_schedule(B.op)


def listing(s, args):
    return str(coulis.lower(s, args, simple_mode=True)) + "\n"


def test_the_default_schedule_prints_as_listing_1():
    A, B, s = row_sum()
    assert listing(s, [A, B]) == frozen(1)


def test_both_axes_split_print_as_listing_2_and_bound_to_threads_as_listing_3():
    A, B, s = row_sum()
    ko, ki = s[B].split(B.op.reduce_axis[0], factor=16)
    xo, xi = s[B].split(B.op.axis[0], factor=32)
    assert listing(s, [A, B]) == frozen(2)
    s[B].bind(xo, te.thread_axis("blockIdx.x"))
    s[B].bind(xi, te.thread_axis("threadIdx.x"))
    assert listing(s, [A, B]) == frozen(3)


def test_a_factored_reduction_prints_as_listing_4_and_its_body_as_listing_5():
    A, B, s = row_sum()
    ko, ki = s[B].split(B.op.reduce_axis[0], factor=16)
    BF = s.rfactor(B, ki)
    assert listing(s, [A, B]) == frozen(4)
    assert str(s[B].op.body) + "\n" == frozen(5)
    assert BF.name == "B.rf"
    assert [axis.name for axis in BF.op.axis] == ["k_inner", "i"]


def test_the_convolution_prints_as_listing_7():
    n = te.var("n")
    Input = te.placeholder((n, n), name="Input")
    Filter = te.placeholder((3, 3), name="Filter")
    di = te.reduce_axis((0, 3), name="di")
    dj = te.reduce_axis((0, 3), name="dj")
    Output = te.compute(
        (n - 2, n - 2),
        lambda i, j: te.sum(Input[i + di, j + dj] * Filter[di, dj], axis=[di, dj]),
        name="Output",
    )
    assert listing(te.create_schedule(Output.op), [Input, Filter, Output]) == frozen(7)


def test_loops_are_in_parts_where_they_are_not_asked_for_whole():
    A, B, s = row_sum()
    s[B].split(B.op.reduce_axis[0], factor=16)
    whole, parts = (coulis.lower(s, [A, B], simple_mode=mode).script() for mode in (True, False))
    assert "m // 16" in parts and "m // 16" not in whole


@pytest.mark.parametrize("name", ["a-b", "lambda", "", "1x", "A.data", "a\nb"])
def test_a_function_of_any_name_prints_a_text_that_is_read_back(name):
    A, B, s = row_sum()
    text = coulis.lower(s, [A, B], name=name).script()
    found = np.zeros(3, "float32")
    coulis.compile(text)(np.ones((3, 5), "float32"), found)
    assert found.tolist() == [5, 5, 5]


def test_a_text_with_scope_ids_that_is_built_for_the_simulator_has_its_lowered_text():
    text = """@T.prim_func
def rows(A: T.Buffer((4, 64), "float32"), B: T.Buffer((4,), "float32")):
    T.device_entry()
    bx = T.cta_id([4])
    T.thread_id([32])
    Tx.cta.sum(B[bx], A[bx, 0:64], axes=(-1,))
"""
    assert 'T.launch_thread("threadIdx.x", 32)' in coulis.compile(text, target="sim").source("tir")


def test_a_reducer_of_ones_own_prints_its_combiner():
    n, m = te.var("n"), te.var("m")
    product = te.comm_reducer(lambda x, y: x * y, lambda t: coulis.tir.const(1, dtype=t), name="product")
    A = te.placeholder((n, m), name="A")
    k = te.reduce_axis((0, m), name="k")
    B = te.compute((n,), lambda i: product(A[i, k], axis=k), name="B")
    assert "T.comm_reducer(lambda x, y: x * y, [T.float32(1)])" in str(B.op.body)


def test_a_schedule_whose_threads_fold_together_is_lowered_for_a_gpu():
    A = te.placeholder((40, 12), name="A")
    k = te.reduce_axis((0, 12), "k")
    B = te.compute((40,), lambda i: te.sum(A[i, k], axis=k), name="B")
    s = te.create_schedule(B.op)
    s[B].bind(B.op.axis[0], te.thread_axis("blockIdx.x"))
    s[B].bind(k, te.thread_axis("threadIdx.x"))
    for simple_mode in (True, False):
        text = str(coulis.lower(s, [A, B], simple_mode=simple_mode))
        assert 'T.launch_thread("threadIdx.x", 12)' in text
    function = coulis.build(s, [A, B], "sim")
    assert function.source("tir") == function.source()
    again = coulis.compile(coulis.lower(s, [A, B]).script(), target="sim")
    assert 'T.launch_thread("threadIdx.x", 12)' in again.source("tir")
