# test: simulate n=4
# error simulate: clusters of [4, 1, 1] blocks, at most 16 of them, do not make up a grid of [6, 1, 1]
@T.prim_func
def bad(A: T.Buffer((128,), "int32"), B: T.Buffer((128,), "int32")):
    bx = T.launch_thread("blockIdx.x", 4)
    cx = T.launch_thread("clusterCtaIdx.x", 2)
    tx = T.launch_thread("threadIdx.x", 32)
    s = T.allocate([32], "int32", "shared")
    r = T.allocate([1], "int32", "local")
    s[tx] = A[bx * 32 + tx]
    T.cuda.cluster_sync()
    r[0] = T.cuda.cluster_load(s[tx], A[cx])  # error access out of bounds: thread (0, 0, 0) of block (1, 0, 0) reads memory of block 3 of its cluster, which has 2 (128 times)
    T.cuda.cluster_sync()
    B[bx * 32 + tx] = r[0]

@T.prim_func
def ragged(B: T.Buffer((12,), "int32"), n: T.int32):
    bx = T.launch_thread("blockIdx.x", n + 2)
    cx = T.launch_thread("clusterCtaIdx.x", 4)
    B[bx] = cx
