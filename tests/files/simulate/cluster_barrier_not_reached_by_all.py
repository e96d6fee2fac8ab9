# test: simulate
# What decides is kept in memory, where the verifier does not look.
@T.prim_func
def bad_between_blocks(A: T.Buffer((128,), "int32"), B: T.Buffer((128,), "int32")):
    bx = T.launch_thread("blockIdx.x", 4)
    cx = T.launch_thread("clusterCtaIdx.x", 2)
    tx = T.launch_thread("threadIdx.x", 32)
    c = T.allocate([1], "int32", "local")
    c[0] = A[bx % 2]
    if c[0] > 1:
        T.cuda.cluster_sync()  # error barrier not reached by all: thread (0, 0, 0) of block (1, 0, 0) waits at a cluster barrier that thread (0, 0, 0) of block (0, 0, 0) does not reach (2 times)
    B[bx * 32 + tx] = c[0]

@T.prim_func
def bad_of_two_kinds(A: T.Buffer((128,), "int32"), B: T.Buffer((128,), "int32")):
    bx = T.launch_thread("blockIdx.x", 4)
    cx = T.launch_thread("clusterCtaIdx.x", 2)
    tx = T.launch_thread("threadIdx.x", 32)
    c = T.allocate([1], "int32", "local")
    c[0] = A[bx % 2]
    if c[0] > 1:
        T.cuda.cluster_sync()  # error barrier not reached by all: thread (0, 0, 0) of block (1, 0, 0) waits at a cluster barrier that thread (0, 0, 0) of block (0, 0, 0) does not reach (2 times)
    else:
        T.cuda.cta_sync()
    B[bx * 32 + tx] = c[0]

@T.prim_func
def good(A: T.Buffer((128,), "int32"), B: T.Buffer((128,), "int32")):
    bx = T.launch_thread("blockIdx.x", 4)
    cx = T.launch_thread("clusterCtaIdx.x", 2)
    tx = T.launch_thread("threadIdx.x", 32)
    c = T.allocate([1], "int32", "local")
    s = T.allocate([1], "int32", "shared")
    r = T.allocate([1], "int32", "local")
    c[0] = A[bx // 2]
    if tx == 0:
        s[0] = A[bx]
    if c[0] > -100:
        T.cuda.cluster_sync()
        r[0] = T.cuda.cluster_load(s[0], 1 - cx)
        T.cuda.cluster_sync()
        B[bx * 32 + tx] = r[0]
