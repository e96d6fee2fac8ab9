# test: simulate
# What decides is kept in memory, where the verifier does not look.
@T.prim_func
def bad_between_lanes(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32")):
    tx = T.launch_thread("threadIdx.x", 64)
    c = T.allocate([1], "int32", "local")
    c[0] = A[tx]
    if c[0] > 0:
        T.cuda.cta_sync()  # error barrier not reached by all: thread (1, 0, 0) of block (0, 0, 0) waits at a cta barrier that thread (0, 0, 0) of block (0, 0, 0) does not reach (2 times)
    B[tx] = A[tx]

@T.prim_func
def bad_between_warps(A: T.Buffer((4,), "int32"), B: T.Buffer((64,), "int32")):
    tx = T.launch_thread("threadIdx.x", 64)
    c = T.allocate([1], "int32", "local")
    c[0] = A[tx // 32]
    if c[0] > 1:
        T.cuda.cta_sync()  # error barrier not reached by all: thread (32, 0, 0) of block (0, 0, 0) waits at a cta barrier that thread (0, 0, 0) of block (0, 0, 0) does not reach
    B[tx] = 1

@T.prim_func
def bad_at_another(A: T.Buffer((4,), "int32"), B: T.Buffer((64,), "int32")):
    tx = T.launch_thread("threadIdx.x", 64)
    c = T.allocate([1], "int32", "local")
    c[0] = A[tx // 32]
    if c[0] > 1:
        T.cuda.cta_sync()
    else:
        T.cuda.cta_sync()  # error barrier not reached by all: thread (0, 0, 0) of block (0, 0, 0) waits at a cta barrier, and thread (32, 0, 0) of block (0, 0, 0) at another barrier
    B[tx] = 1

@T.prim_func
def bad_in_a_warp(A: T.Buffer((32,), "int32"), B: T.Buffer((32,), "int32")):
    tx = T.launch_thread("threadIdx.x", 32)
    c = T.allocate([1], "int32", "local")
    c[0] = A[tx]
    if c[0] > 0:
        T.cuda.warp_sync()  # error barrier not reached by all: thread (1, 0, 0) of block (0, 0, 0) waits at a warp barrier that thread (0, 0, 0) of block (0, 0, 0) does not reach
    B[tx] = A[tx]

@T.prim_func
def good(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32")):
    tx = T.launch_thread("threadIdx.x", 64)
    c = T.allocate([1], "int32", "local")
    if A[0] > -100:
        T.cuda.cta_sync()
    c[0] = A[tx // 32]
    if c[0] > 1:
        T.cuda.warp_sync()
    B[tx] = A[tx]
