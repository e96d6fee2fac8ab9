# The next tile is on its way while this one is read: one barrier a turn.
# test: lower after=place_barriers target=sm_90a
# check: with T.allocate([2, 32], "float32", "shared") as s:
# check: if 0 < n:
# check: s[T.FloorMod(0, 2), tx] = A
# check: T.cuda.cta_sync()
# check: for k in range(n):
# check: T.cuda.cta_sync()
# check: if k + 1 < n:
# check: s[(k + 1) % 2, tx] = A[(k + 1) * 32 + tx]
# check: x[0] = x[0] + s[k % 2, 31 - tx]
# check: B[tx] = x[0]
@T.prim_func(form="Nest")
def turned(A: T.Buffer((4096,), "float32"), B: T.Buffer((32,), "float32"), n: T.int32):
    tx = T.launch_thread("threadIdx.x", 32)
    x = T.allocate([1], "float32", "local")
    x[0] = T.float32(0)
    for k in range(n):
        with T.attr(None, "double_buffer", 1):
            s = T.allocate([32], "float32", "shared")
            s[tx] = A[k * 32 + tx]
            x[0] = x[0] + s[31 - tx]
    B[tx] = x[0]
