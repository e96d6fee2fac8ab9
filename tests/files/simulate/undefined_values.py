# test: simulate
# Lanes 8 to 15 of each half ask lanes of the other half, which their mask does not name. What they get is theirs to
# drop, as the sum over a group of 16 does; it may not reach memory.
@T.prim_func
def bad(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
    tx = T.launch_thread("threadIdx.x", 32)
    mask = T.allocate([1], "uint32", "local")
    x = T.allocate([1], "float32", "local")
    mask[0] = T.uint32(65535) << T.Cast("uint32", tx // 16 * 16)
    x[0] = T.tvm_warp_shuffle_down(mask[0], A[tx], 8, 32, 32)
    B[tx] = A[tx] + x[0]  # error use of an undefined value: a value that is stored of thread (8, 0, 0) of block (0, 0, 0) comes from a lane that did not take part in the shuffle

@T.prim_func
def good(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
    tx = T.launch_thread("threadIdx.x", 32)
    mask = T.allocate([1], "uint32", "local")
    x = T.allocate([1], "float32", "local")
    y = T.allocate([1], "float32", "local")
    mask[0] = T.uint32(65535) << T.Cast("uint32", tx // 16 * 16)
    x[0] = T.tvm_warp_shuffle_down(mask[0], A[tx], 8, 32, 32)
    y[0] = A[tx] + x[0]
    if tx % 16 < 8:
        B[tx] = y[0]
