# test: simulate
# A launch ends before the next begins, so a second kernel may read what the first one wrote.
@T.prim_func
def good(A: T.Buffer((256,), "int32"), B: T.Buffer((1,), "int32")):
    P = T.allocate([4], "int32", "global")
    with T.launch_thread("blockIdx.x", 4) as bx:
        total = T.allocate([1], "int32", "local")
        total[0] = 0
        for i in range(64):
            total[0] = total[0] + A[bx * 64 + i]
        P[bx] = total[0]
    tx = T.launch_thread("threadIdx.x", 1)
    B[0] = P[0] + P[1] + P[2] + P[3]
