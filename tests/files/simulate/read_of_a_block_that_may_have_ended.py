# test: simulate
# Shared memory ends with its block, whichever ends first.
@T.prim_func
def bad(A: T.Buffer((128,), "int32"), B: T.Buffer((128,), "int32")):
    bx = T.launch_thread("blockIdx.x", 4)
    cx = T.launch_thread("clusterCtaIdx.x", 2)
    tx = T.launch_thread("threadIdx.x", 32)
    s = T.allocate([32], "int32", "shared")
    r = T.allocate([1], "int32", "local")
    s[tx] = A[bx * 32 + tx]
    T.cuda.cluster_sync()
    r[0] = T.cuda.cluster_load(s[31 - tx], 1 - cx)  # error read of a block that may have ended: thread (0, 0, 0) of block (0, 0, 0) reads `s` of block [1, 0, 0], and no barrier of the cluster keeps that block from ending before (66 times)
    B[bx * 32 + tx] = r[0]

@T.prim_func
def bad_of_one(A: T.Buffer((128,), "int32"), B: T.Buffer((128,), "int32")):
    bx = T.launch_thread("blockIdx.x", 4)
    cx = T.launch_thread("clusterCtaIdx.x", 2)
    tx = T.launch_thread("threadIdx.x", 32)
    s = T.allocate([32], "int32", "shared")
    r = T.allocate([1], "int32", "local")
    s[tx] = A[bx * 32 + tx]
    T.cuda.cluster_sync()
    if cx == 0:
        r[0] = T.cuda.cluster_load(s[31 - tx], 1)  # error read of a block that may have ended: thread (0, 0, 0) of block (0, 0, 0) reads `s` of block [1, 0, 0], and no barrier of the cluster keeps that block from ending before (64 times)
        B[bx * 32 + tx] = r[0]
    T.cuda.cta_sync()

@T.prim_func
def good(A: T.Buffer((128,), "int32"), B: T.Buffer((128,), "int32")):
    bx = T.launch_thread("blockIdx.x", 4)
    cx = T.launch_thread("clusterCtaIdx.x", 2)
    tx = T.launch_thread("threadIdx.x", 32)
    s = T.allocate([32], "int32", "shared")
    r = T.allocate([1], "int32", "local")
    s[tx] = A[bx * 32 + tx]
    T.cuda.cluster_sync()
    if cx == 0:
        r[0] = T.cuda.cluster_load(s[31 - tx], 1)
        B[bx * 32 + tx] = r[0]
    T.cuda.cluster_sync()

@T.prim_func
def good_of_itself(A: T.Buffer((128,), "int32"), B: T.Buffer((128,), "int32")):
    bx = T.launch_thread("blockIdx.x", 4)
    cx = T.launch_thread("clusterCtaIdx.x", 2)
    tx = T.launch_thread("threadIdx.x", 32)
    s = T.allocate([32], "int32", "shared")
    r = T.allocate([1], "int32", "local")
    s[tx] = A[bx * 32 + tx]
    T.cuda.cta_sync()
    r[0] = T.cuda.cluster_load(s[31 - tx], cx)
    B[bx * 32 + tx] = r[0]
