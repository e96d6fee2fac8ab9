# test: simulate
# Lanes of a warp exchange values through shared memory; only a barrier of the warp orders them.
@T.prim_func
def bad(B: T.Buffer((32,), "int32")):
    tx = T.launch_thread("threadIdx.x", 32)
    s = T.allocate([32], "int32", "shared")
    s[tx] = tx
    B[tx] = s[31 - tx]  # error race between lanes: thread (31, 0, 0) of block (0, 0, 0) writes and thread (0, 0, 0) of block (0, 0, 0) reads element 31 of `s`, and no barrier orders them (32 times)

@T.prim_func
def good(B: T.Buffer((32,), "int32")):
    tx = T.launch_thread("threadIdx.x", 32)
    s = T.allocate([32], "int32", "shared")
    s[tx] = tx
    T.cuda.warp_sync()
    B[tx] = s[31 - tx]
