# test: simulate
# A choice reads both sides; only what it takes has to be written.
@T.prim_func
def good(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32"), D: T.Buffer((16,), "int32")):
    P = T.allocate([64], "int32", "global")
    tx = T.launch_thread("threadIdx.x", 16)
    s = T.allocate([65], "int32", "shared")
    x = T.allocate([4], "int32", "local")
    P[tx * 4:tx * 4 + 4] = A[tx * 4:tx * 4 + 4]
    s[tx * 4 + 1:tx * 4 + 1 + 4] = A[tx * 4:tx * 4 + 4]
    x[1] = A[tx]
    x[2] = A[tx]
    T.cuda.cta_sync()
    B[tx * 4:tx * 4 + 4] = T.Select(T.Ramp(tx * 4, 1, 4) >= T.Broadcast(1, 4), s[tx * 4:tx * 4 + 4], T.Broadcast(0, 4)) + T.Select(T.Ramp(0, 1, 4) % T.Broadcast(3, 4) == T.Broadcast(0, 4), P[tx * 4:tx * 4 + 4], x[0:4])
    D[tx] = T.Select(tx > 0, T.Select(tx > 16, x[tx % 2 * 3], s[tx]), 0)

@T.prim_func
def bad(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32"), D: T.Buffer((16,), "int32")):
    P = T.allocate([64], "int32", "global")
    tx = T.launch_thread("threadIdx.x", 16)
    s = T.allocate([65], "int32", "shared")
    x = T.allocate([4], "int32", "local")
    x[1] = A[tx]
    x[2] = A[tx]
    s[tx * 4 + 1:tx * 4 + 1 + 4] = A[tx * 4:tx * 4 + 4]
    T.cuda.cta_sync()
    B[tx * 4:tx * 4 + 4] = T.Select(T.Ramp(tx * 4, 1, 4) >= T.Broadcast(0, 4), s[tx * 4:tx * 4 + 4], T.Broadcast(0, 4)) + T.Select(T.Ramp(0, 1, 4) < T.Broadcast(3, 4), x[0:4], P[tx * 4:tx * 4 + 4])  # error read of unwritten memory: thread (0, 0, 0) of block (0, 0, 0) reads element 0 of `s`, which nothing has written
    # error read of unwritten memory: thread (0, 0, 0) of block (0, 0, 0) reads element 0 of `x`, which it has not written
    # error read of unwritten memory: thread (0, 0, 0) of block (0, 0, 0) reads element 3 of `P`, which nothing has written (16 times)
    D[tx] = T.Select(tx > 2, x[tx % 2 * 3], s[0]) + T.Select(tx > 0, s[tx], T.Select(tx > 0, s[0], s[tx + 1]))  # error read of unwritten memory: thread (3, 0, 0) of block (0, 0, 0) reads element 3 of `x`, which it has not written (13 times)
    # error read of unwritten memory: thread (0, 0, 0) of block (0, 0, 0) reads element 0 of `s`, which nothing has written (3 times)
