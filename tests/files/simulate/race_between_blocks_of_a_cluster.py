# test: simulate
# A block reads what the next one of its cluster wrote. A barrier of the block is not enough, and one after the read keeps
# the next write off it.
@T.prim_func
def bad_before(A: T.Buffer((128,), "int32"), B: T.Buffer((128,), "int32")):
    bx = T.launch_thread("blockIdx.x", 4)
    cx = T.launch_thread("clusterCtaIdx.x", 2)
    tx = T.launch_thread("threadIdx.x", 32)
    s = T.allocate([32], "int32", "shared")
    r = T.allocate([1], "int32", "local")
    s[tx] = A[bx * 32 + tx]
    T.cuda.cta_sync()
    r[0] = T.cuda.cluster_load(s[31 - tx], 1 - cx)  # error read of unwritten memory: thread (0, 0, 0) of block (0, 0, 0) reads element 31 of `s`, which nothing has written (64 times)
    # error race between blocks of a cluster: thread (31, 0, 0) of block (0, 0, 0) writes and thread (0, 0, 0) of block (1, 0, 0) reads element 31 of `s`, and no barrier of the cluster orders them (64 times)
    T.cuda.cluster_sync()
    B[bx * 32 + tx] = r[0]  # error result depends on the order of warps: element 0 of `B` has other bits when warps run in another order

@T.prim_func
def bad_after(A: T.Buffer((128,), "int32"), B: T.Buffer((128,), "int32")):
    bx = T.launch_thread("blockIdx.x", 4)
    cx = T.launch_thread("clusterCtaIdx.x", 2)
    tx = T.launch_thread("threadIdx.x", 32)
    s = T.allocate([32], "int32", "shared")
    r = T.allocate([1], "int32", "local")
    s[tx] = A[bx * 32 + tx]
    T.cuda.cluster_sync()
    r[0] = T.cuda.cluster_load(s[31 - tx], 1 - cx)  # error race between blocks of a cluster: thread (31, 0, 0) of block (1, 0, 0) writes and thread (0, 0, 0) of block (0, 0, 0) reads element 31 of `s`, and no barrier of the cluster orders them (64 times)
    T.cuda.cta_sync()
    s[tx] = r[0]  # error race between blocks of a cluster: thread (31, 0, 0) of block (1, 0, 0) reads and thread (0, 0, 0) of block (0, 0, 0) writes element 0 of `s`, and no barrier of the cluster orders them (64 times)
    T.cuda.cluster_sync()
    B[bx * 32 + tx] = s[tx]  # error result depends on the order of warps: element 0 of `B` has other bits when warps run in another order

@T.prim_func
def good(A: T.Buffer((128,), "int32"), B: T.Buffer((128,), "int32")):
    bx = T.launch_thread("blockIdx.x", 4)
    cx = T.launch_thread("clusterCtaIdx.x", 2)
    tx = T.launch_thread("threadIdx.x", 32)
    s = T.allocate([32], "int32", "shared")
    r = T.allocate([1], "int32", "local")
    s[tx] = A[bx * 32 + tx]
    T.cuda.cluster_sync()
    r[0] = T.cuda.cluster_load(s[31 - tx], 1 - cx)
    T.cuda.cluster_sync()
    s[tx] = r[0]
    T.cuda.cta_sync()
    B[bx * 32 + tx] = s[31 - tx]

@T.prim_func
def bad_through_global_memory(A: T.Buffer((128,), "int32"), B: T.Buffer((128,), "int32")):
    P = T.allocate([128], "int32", "global")
    bx = T.launch_thread("blockIdx.x", 4)
    cx = T.launch_thread("clusterCtaIdx.x", 2)
    tx = T.launch_thread("threadIdx.x", 32)
    P[bx * 32 + tx] = A[bx * 32 + tx]
    T.cuda.cta_sync()
    B[bx * 32 + tx] = P[(bx + 1 - cx * 2) * 32 + tx]  # error read of unwritten memory: thread (0, 0, 0) of block (0, 0, 0) reads element 32 of `P`, which nothing has written (64 times)
    # error race between blocks: thread (0, 0, 0) of block (0, 0, 0) writes and thread (0, 0, 0) of block (1, 0, 0) reads element 0 of `P`, and no fence with an atomic operation orders them (64 times)
    # error result depends on the order of warps: element 1 of `B` has other bits when warps run in another order

@T.prim_func
def good_through_global_memory(A: T.Buffer((128,), "int32"), B: T.Buffer((128,), "int32")):
    P = T.allocate([128], "int32", "global")
    bx = T.launch_thread("blockIdx.x", 4)
    cx = T.launch_thread("clusterCtaIdx.x", 2)
    tx = T.launch_thread("threadIdx.x", 32)
    P[bx * 32 + tx] = A[bx * 32 + tx]
    T.cuda.cluster_sync()
    B[bx * 32 + tx] = P[(bx + 1 - cx * 2) * 32 + tx]
