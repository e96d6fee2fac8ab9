"""Tile kernels of the meaning of seeds 000 to 002, as decorated functions: run in the simulator, shown as CUDA."""

import numpy as np
import pytest

import coulis
from coulis.script import S, TileLayout
from coulis.script import tile as Tx
from coulis.script import tirx as T

RNG = np.random.default_rng(5)


def vector_sum(length, is_accumulated=False):
    vector, one = TileLayout(S[(length,)]), TileLayout(S[(1,)])

    @T.prim_func
    def kernel(A_ptr: T.handle, B_ptr: T.handle):
        A = T.match_buffer(A_ptr, [length], "float32", layout=vector)
        B = T.match_buffer(B_ptr, [1], "float32", layout=one)
        T.device_entry()
        T.cta_id([1])
        T.thread_id([1])
        A_local = T.alloc_buffer([length], "float32", scope="local")
        B_local = T.alloc_buffer([1], "float32", scope="local")
        for i in T.serial(length):
            A_local[i] = A[i]
        if is_accumulated:
            B_local[0] = B[0]
        Tx.sum(B_local, A_local, accum=is_accumulated)
        B[0] = B_local[0]

    return kernel


def row_fold(rows, cols, op, threads):
    tile, row = TileLayout(S[(rows, cols)]), TileLayout(S[(rows,)])

    @T.prim_func
    def kernel(A_ptr: T.handle, B_ptr: T.handle):
        A = T.match_buffer(A_ptr, (rows, cols), "float32", layout=tile)
        B = T.match_buffer(B_ptr, (rows,), "float32", layout=row)
        T.device_entry()
        T.cta_id([1])
        T.thread_id([threads])
        A_smem = T.alloc_buffer((rows, cols), "float32", scope="shared", layout=tile)
        B_smem = T.alloc_buffer((rows,), "float32", scope="shared", layout=row)
        Tx.cta.copy(A_smem, A)
        T.cuda.cta_sync()
        if op == "sum":
            Tx.cta.sum(B_smem, A_smem, axes=(-1,), accum=False)
        else:
            Tx.cta.max(B_smem, A_smem, axes=(-1,), accum=False)
        T.cuda.cta_sync()
        Tx.cta.copy(B, B_smem)

    return kernel


@pytest.mark.parametrize("length", [4, 32, 5])
@pytest.mark.parametrize("is_accumulated", [False, True])
def test_one_thread_sums_its_registers(length, is_accumulated):
    f = coulis.compile(vector_sum(length, is_accumulated), "sim")
    a, b = RNG.integers(-4, 5, length).astype("float32"), np.full(1, 3, "float32")
    f(a, b)
    assert b[0] == a.sum() + 3 * is_accumulated


@pytest.mark.parametrize("op, threads", [("sum", 32), ("max", 32), ("sum", 64)])
def test_a_block_folds_the_rows_of_a_tile(op, threads):
    f = coulis.compile(row_fold(4, 8, op, threads), "sim")
    a, b = RNG.integers(-4, 5, (4, 8)).astype("float32"), np.zeros(4, "float32")
    f(a, b)
    np.testing.assert_array_equal(b, getattr(a, op)(axis=1))


def test_the_variant_follows_the_architecture_and_is_explained():
    kernel = vector_sum(32)
    old, new = coulis.compile(kernel, "cuda", arch="sm_90a"), coulis.compile(kernel, "cuda", arch="sm_100a")
    assert "add" in new.source() and old.source() != new.source()
    assert "chosen" in old.explain() and "sm100_packed" in new.explain()
    assert "__global__" in coulis.compile(row_fold(4, 8, "sum", 32), "cuda").source("cuda")


def test_the_variants_of_a_simulated_kernel_are_those_of_the_simulator_and_its_warps():
    @T.prim_func
    def kernel(A_ptr: T.handle, B_ptr: T.handle):
        A = T.match_buffer(A_ptr, (64,), "float32")
        B = T.match_buffer(B_ptr, (1,), "float32")
        T.device_entry()
        T.cta_id([1])
        T.thread_id([64])
        T.warp_id([1])
        Tx.warp.sum(B, A)

    assert "found sim" in coulis.compile(row_fold(4, 8, "sum", 32), "sim").explain()
    f = coulis.compile(kernel, "sim64")
    assert "chosen" in f.explain() and "on sim" in f.explain()
    b = np.zeros(1, "float32")
    f(np.ones(64, "float32"), b)
    assert b[0] == 64
    # So is the text: the last step of the sum adds halves of a warp of 64 lanes.
    assert "32, 64, 64)" in f.source("tir")
