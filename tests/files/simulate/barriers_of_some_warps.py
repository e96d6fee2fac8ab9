# test: simulate
# Two warps exchange by a named barrier that waits for 64 threads, while the others go on; a warpgroup has a barrier of
# its own, and two warpgroups at one barrier may each let warps of the other go.
@T.prim_func
def good(A: T.Buffer((256,), "int32"), B: T.Buffer((256,), "int32")):
    tx = T.launch_thread("threadIdx.x", 256)
    s = T.allocate([256], "int32", "shared")
    s[tx] = A[tx]
    if tx < 64:
        T.cuda.named_barrier_sync(1, 64)
        B[tx] = s[63 - tx]
    else:
        B[tx] = A[tx]

@T.prim_func
def good_by_warpgroups(A: T.Buffer((256,), "int32"), B: T.Buffer((256,), "int32")):
    tx = T.launch_thread("threadIdx.x", 256)
    s = T.allocate([256], "int32", "shared")
    s[tx] = A[tx]
    if tx < 128:
        T.cuda.warpgroup_sync(2)
    else:
        T.cuda.warpgroup_sync(3)
    B[tx] = s[tx // 128 * 128 + (127 - tx % 128)]

@T.prim_func
def good_one_after_the_other(A: T.Buffer((256,), "int32"), B: T.Buffer((256,), "int32")):
    tx = T.launch_thread("threadIdx.x", 256)
    s = T.allocate([256], "int32", "shared")
    s[tx] = A[tx]
    if tx < 128:
        T.cuda.warpgroup_sync(2)
        B[tx] = s[127 - tx]
    T.cuda.cta_sync()
    if tx >= 128:
        T.cuda.warpgroup_sync(2)
        B[tx] = s[tx]

@T.prim_func
def good_again(A: T.Buffer((256,), "int32"), B: T.Buffer((256,), "int32")):
    tx = T.launch_thread("threadIdx.x", 256)
    s = T.allocate([256], "int32", "shared")
    if tx < 64:
        for k in range(4):
            s[tx + k * 64] = A[tx + k * 64]
            T.cuda.named_barrier_sync(1, 64)
            B[tx + k * 64] = s[63 - tx + k * 64]
    else:
        if tx < 128:
            T.cuda.named_barrier_sync(2, 64)

@T.prim_func
def bad(A: T.Buffer((256,), "int32"), B: T.Buffer((256,), "int32")):
    tx = T.launch_thread("threadIdx.x", 256)
    s = T.allocate([256], "int32", "shared")
    s[tx] = A[tx]
    if A[tx // 64] > 100:
        B[tx] = A[tx]
    else:
        T.cuda.named_barrier_sync(1, 512)  # error barrier not reached by all: thread (0, 0, 0) of block (0, 0, 0) waits at a named barrier for more threads than the block has
        B[tx] = s[255 - tx]

@T.prim_func
def bad_by_halves(A: T.Buffer((128,), "int32"), B: T.Buffer((128,), "int32")):
    tx = T.launch_thread("threadIdx.x", 128)
    s = T.allocate([128], "int32", "shared")
    s[tx] = A[tx]
    T.cuda.named_barrier_sync(1, 64)  # error barrier of two groups: thread (64, 0, 0) of block (0, 0, 0) and thread (0, 0, 0) of block (0, 0, 0) of another group both use barrier 1, which opens when enough threads of either came (4 times)
    B[tx] = s[tx // 64 * 64 + (tx + 32) % 64]

@T.prim_func
def bad_by_warpgroups(A: T.Buffer((256,), "int32"), B: T.Buffer((256,), "int32")):
    tx = T.launch_thread("threadIdx.x", 256)
    s = T.allocate([256], "int32", "shared")
    s[tx] = A[tx]
    T.cuda.warpgroup_sync(2)  # error barrier of two groups: thread (128, 0, 0) of block (0, 0, 0) and thread (0, 0, 0) of block (0, 0, 0) of another group both use barrier 2, which opens when enough threads of either came (16 times)
    B[tx] = s[tx // 128 * 128 + (127 - tx % 128)]

@T.prim_func
def bad_by_other_warpgroups(A: T.Buffer((256,), "int32"), B: T.Buffer((256,), "int32")):
    tx = T.launch_thread("threadIdx.x", 256)
    s = T.allocate([256], "int32", "shared")
    s[tx] = A[tx]
    if tx < 128:
        T.cuda.warpgroup_sync(2)
    else:
        T.cuda.warpgroup_sync(3)
    B[tx] = s[255 - tx]  # error read of unwritten memory: thread (96, 0, 0) of block (0, 0, 0) reads element 159 of `s`, which nothing has written (32 times)
    # error race between warps: thread (31, 0, 0) of block (0, 0, 0) writes and thread (224, 0, 0) of block (0, 0, 0) reads element 31 of `s`, and no barrier orders them (224 times)
    # error result depends on the order of warps: element 96 of `B` has other bits when warps run in another order

@T.prim_func
def bad_by_parts_of_warps(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32")):
    tx = T.launch_thread("threadIdx.x", 64)
    T.cuda.named_barrier_sync(1, 33)  # error count of a barrier: thread (0, 0, 0) of block (0, 0, 0) waits at barrier 1 for 33 threads; a barrier waits for whole warps, 32 threads or a multiple (2 times)
    B[tx] = A[tx]

@T.prim_func
def bad_by_none(A: T.Buffer((32,), "int32"), B: T.Buffer((32,), "int32")):
    tx = T.launch_thread("threadIdx.x", 32)
    T.cuda.named_barrier_sync(1, 0)  # error count of a barrier: thread (0, 0, 0) of block (0, 0, 0) waits at barrier 1 for 0 threads; a barrier waits for whole warps, 32 threads or a multiple
    B[tx] = A[tx]
