# A block of each cluster of four adds what the others hold; halves are widened, truths are bytes.
@T.prim_func
def cluster_sum(A: T.Buffer((8, 64), "float16"), B: T.Buffer((2,), "float16"), C: T.Buffer((2,), "bool")):
    bx = T.launch_thread("blockIdx.x", 8)
    cx = T.launch_thread("clusterCtaIdx.x", 4)
    tx = T.launch_thread("threadIdx.x", 32)
    A_1 = T.Buffer((512,), "float16", data=A.data)
    s = T.allocate([1], "float16", "shared")
    t = T.allocate([1], "bool", "shared")
    x = T.allocate([1], "float16", "local")
    y = T.allocate([1], "bool", "local")
    total = T.allocate([1], "float16", "local")
    if tx == 0:
        s[0] = A_1[bx * 64]
        t[0] = A_1[bx * 64] > T.float16(0)
    T.cuda.cluster_sync()
    if cx == 0 and tx == 0:
        total[0] = T.float16(0)
        for block in range(4):
            x[0] = T.cuda.cluster_load(s[0], block)
            total[0] = total[0] + x[0]
        y[0] = T.cuda.cluster_load(t[0], 3)
        B[bx // 4] = total[0]
        C[bx // 4] = y[0]
    T.cuda.cluster_sync()
