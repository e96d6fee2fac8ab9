# A remark is about the loop right inside it, so that the barrier before the loop stands before the remark.
# test: lower after=place_barriers target=sm_90a
# check: for k in range(n):
# check: T.cuda.cta_sync()
# check: with T.attr(None, "pragma_async_copy", 1):
# check: for q in range(4):
# check: s[q * 32 + tx] = A[k * 128 + q * 32 + tx]
# check: T.cuda.cta_sync()
# check: x[0] = x[0] + s[31 - tx]
@T.prim_func(form="Nest")
def turned(A: T.Buffer((4096,), "float32"), B: T.Buffer((32,), "float32"), n: T.int32):
    tx = T.launch_thread("threadIdx.x", 32)
    s = T.allocate([128], "float32", "shared")
    x = T.allocate([1], "float32", "local")
    x[0] = T.float32(0)
    for k in range(n):
        with T.attr(None, "pragma_async_copy", 1):
            for q in range(4):
                s[q * 32 + tx] = A[k * 128 + q * 32 + tx]
        x[0] = x[0] + s[31 - tx]
    B[tx] = x[0]
