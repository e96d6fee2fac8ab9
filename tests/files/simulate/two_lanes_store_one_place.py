# test: simulate
@T.prim_func
def bad(B: T.Buffer((32,), "int32")):
    tx = T.launch_thread("threadIdx.x", 32)
    B[tx // 2] = tx  # error race between lanes: thread (0, 0, 0) of block (0, 0, 0) writes and thread (1, 0, 0) of block (0, 0, 0) writes element 0 of `B`, and no barrier orders them (16 times)

@T.prim_func
def good(B: T.Buffer((32,), "int32")):
    tx = T.launch_thread("threadIdx.x", 32)
    if tx % 2 == 0:
        B[tx // 2] = tx
