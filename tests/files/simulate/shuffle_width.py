# test: simulate
@T.prim_func
def bad(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32"), M: T.Buffer((1,), "int32")):
    tx = T.launch_thread("threadIdx.x", 32)
    B[tx] = T.tvm_warp_shuffle(T.uint32(4294967295), A[tx], 0, 12, 32)  # error width of a shuffle: thread (0, 0, 0) of block (0, 0, 0) shuffles with width 12 in warps of 32; warps have 32 lanes, and a width is a power of two up to that (32 times)
