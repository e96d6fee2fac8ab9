# test: simulate
@T.prim_func
def bad(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32"), D: T.Buffer((64,), "int32")):
    P = T.allocate([64], "int32", "global")
    tx = T.launch_thread("threadIdx.x", 64)
    s = T.allocate([64], "int32", "shared")
    x = T.allocate([2], "int32", "local")
    if A[tx] > 0:
        s[tx] = A[tx]
        x[tx % 2] = A[tx]
        P[tx] = A[tx]
    B[tx] = s[tx]  # error read of unwritten memory: thread (0, 0, 0) of block (0, 0, 0) reads element 0 of `s`, which nothing has written (25 times)
    D[tx] = x[tx % 2] + P[tx] + B[63 - tx]  # error read of unwritten memory: thread (0, 0, 0) of block (0, 0, 0) reads element 0 of `x`, which it has not written (25 times)
    # error read of unwritten memory: thread (0, 0, 0) of block (0, 0, 0) reads element 0 of `P`, which nothing has written (25 times)
    # error read of unwritten memory: thread (0, 0, 0) of block (0, 0, 0) reads element 63 of `B`, which nothing has written (32 times)
    # error race between warps: thread (31, 0, 0) of block (0, 0, 0) writes and thread (32, 0, 0) of block (0, 0, 0) reads element 31 of `B`, and no barrier orders them (32 times)

@T.prim_func
def good(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32"), D: T.Buffer((64,), "int32")):
    P = T.allocate([64], "int32", "global")
    tx = T.launch_thread("threadIdx.x", 64)
    s = T.allocate([64], "int32", "shared")
    x = T.allocate([2], "int32", "local")
    s[tx] = A[tx]
    x[tx % 2] = A[tx]
    P[tx] = A[tx]
    B[tx] = s[tx]
    T.cuda.cta_sync()
    D[tx] = x[tx % 2] + P[tx] + B[63 - tx]
