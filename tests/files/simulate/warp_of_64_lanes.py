# test: simulate warp=64
@T.prim_func
def bad(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32")):
    tx = T.launch_thread("threadIdx.x", 64)
    B[tx] = T.tvm_warp_shuffle_down(T.uint64(18446744073709551615), A[tx], 32, 32, 32)  # error width of a shuffle: thread (0, 0, 0) of block (0, 0, 0) shuffles with width 32 in warps of 32; warps have 64 lanes, and a width is a power of two up to that (64 times)

@T.prim_func
def good(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32")):
    tx = T.launch_thread("threadIdx.x", 64)
    s = T.allocate([64], "int32", "shared")
    s[tx] = A[tx]
    T.cuda.warp_sync()
    B[tx] = T.tvm_warp_shuffle_down(T.uint64(18446744073709551615), s[63 - tx], 32, 64, 64)
