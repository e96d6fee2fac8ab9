# test: simulate
@T.prim_func
def bad(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32")):
    tx = T.launch_thread("threadIdx.x", 32)
    B[tx] = T.tvm_warp_shuffle_down(T.uint32(4294967295), A[tx], 2147483647, 32, 32)  # error distance of a shuffle: thread (0, 0, 0) of block (0, 0, 0) shuffles by 2147483647 in a warp of 32 lanes; distances are 0 to 31 (32 times)
    B[tx + 32] = T.tvm_warp_shuffle_up(T.uint32(4294967295), A[tx], -1, 32, 32)  # error distance of a shuffle: thread (0, 0, 0) of block (0, 0, 0) shuffles by -1 in a warp of 32 lanes; distances are 0 to 31 (32 times)
