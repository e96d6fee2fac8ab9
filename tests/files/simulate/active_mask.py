# test: simulate
@T.prim_func
def bad(A: T.Buffer((32,), "int32"), B: T.Buffer((32,), "int32")):
    tx = T.launch_thread("threadIdx.x", 32)
    mask = T.allocate([1], "uint32", "local")
    if A[tx] > 0:
        mask[0] = T.tvm_warp_activemask()
        B[tx] = T.tvm_warp_shuffle_xor(mask[0], A[tx], 0, 32, 32)  # error active lanes taken for a mask: thread (1, 0, 0) of block (0, 0, 0) takes the lanes that were active for the lanes that take part, and others were elsewhere then

@T.prim_func
def good(A: T.Buffer((32,), "int32"), B: T.Buffer((32,), "int32")):
    tx = T.launch_thread("threadIdx.x", 32)
    mask = T.allocate([1], "uint32", "local")
    mask[0] = T.tvm_warp_activemask()
    B[tx] = T.tvm_warp_shuffle_xor(mask[0], A[tx], 1, 32, 32)
