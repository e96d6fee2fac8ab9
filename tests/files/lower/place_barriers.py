# A tile that is filled again in each turn: one barrier before it is read by others, one before it is filled anew.
# test: lower after=place_barriers target=sm_90a
# check: for k in range(n):
# check: T.cuda.cta_sync()
# check: s[tx] = A[k * 32 + tx]
# check: T.cuda.cta_sync()
# check: x[0] = x[0] + s[31 - tx]
# check: B[tx] = x[0]
@T.prim_func(form="Nest")
def turned(A: T.Buffer((4096,), "float32"), B: T.Buffer((32,), "float32"), n: T.int32):
    tx = T.launch_thread("threadIdx.x", 32)
    s = T.allocate([32], "float32", "shared")
    x = T.allocate([1], "float32", "local")
    x[0] = T.float32(0)
    for k in range(n):
        s[tx] = A[k * 32 + tx]
        x[0] = x[0] + s[31 - tx]
    B[tx] = x[0]
