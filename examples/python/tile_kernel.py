"""A kernel written with tiles: a block copies a tile to shared memory, folds its rows there, and copies the result back.

Nothing says how the threads of the block share the work: a tile call is replaced by the best variant for the machine, and
`explain` tells which one and why. The kernel runs in the simulator of a GPU's threads, which needs no GPU and refuses
results of kernels with races; its CUDA source is for a real one.
"""

import numpy as np

import coulis
from coulis.script import S, TileLayout
from coulis.script import tile as Tx
from coulis.script import tirx as T

ROWS, COLUMNS = 16, 64
matrix, column = TileLayout(S[(ROWS, COLUMNS)]), TileLayout(S[(ROWS,)])


@T.prim_func
def largest_of_rows(A_ptr: T.handle, B_ptr: T.handle):
    A = T.match_buffer(A_ptr, (ROWS, COLUMNS), "float32", layout=matrix)
    B = T.match_buffer(B_ptr, (ROWS,), "float32", layout=column)
    T.device_entry()
    T.cta_id([1])
    T.thread_id([64])
    tile = T.alloc_buffer((ROWS, COLUMNS), "float32", scope="shared", layout=matrix)
    found = T.alloc_buffer((ROWS,), "float32", scope="shared", layout=column)
    Tx.cta.copy(tile, A)
    T.cuda.cta_sync()
    Tx.cta.max(found, tile, axes=(-1,), accum=False)
    T.cuda.cta_sync()
    Tx.cta.copy(B, found)


a, b = np.random.default_rng(3).normal(size=(ROWS, COLUMNS)).astype("float32"), np.zeros(ROWS, "float32")
simulated = coulis.compile(largest_of_rows, "sim")
simulated(a, b)
np.testing.assert_array_equal(b, a.max(axis=1))

on_gpu = coulis.compile(largest_of_rows, "cuda", arch="sm_90a")
print(on_gpu.explain())
print(on_gpu.source("cuda"))

# On a machine with a GPU the same function takes arrays of the host, or those of PyTorch and CuPy where they are.
if coulis.cuda(0).exist:
    b[:] = 0
    on_gpu(a, b)
    np.testing.assert_array_equal(b, a.max(axis=1))
else:
    print("SKIP: the part that runs on a GPU")
