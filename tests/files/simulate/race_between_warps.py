# test: simulate
# A tree whose turns write what other warps read in the turn before: each needs its barrier.
@T.prim_func
def bad(A: T.Buffer((256,), "int32"), B: T.Buffer((1,), "int32")):
    tx = T.launch_thread("threadIdx.x", 256)
    s = T.allocate([256], "int32", "shared")
    s[tx] = A[tx]
    for i in range(8):
        if tx < 128 >> i:
            s[tx] = s[tx] + s[tx + (128 >> i)]  # error read of unwritten memory: thread (0, 0, 0) of block (0, 0, 0) reads element 128 of `s`, which nothing has written (224 times)
            # error race between lanes: thread (16, 0, 0) of block (0, 0, 0) writes and thread (0, 0, 0) of block (0, 0, 0) reads element 16 of `s`, and no barrier orders them (31 times)
            # error race between warps: thread (160, 0, 0) of block (0, 0, 0) writes and thread (32, 0, 0) of block (0, 0, 0) reads element 160 of `s`, and no barrier orders them (128 times)
            # error race between warps: thread (64, 0, 0) of block (0, 0, 0) writes and thread (0, 0, 0) of block (0, 0, 0) reads element 64 of `s`, and no barrier orders them (64 times)
    T.cuda.cta_sync()
    if tx == 0:
        B[0] = s[0]  # error result depends on the order of warps: element 0 of `B` has other bits when warps run in another order

@T.prim_func
def good(A: T.Buffer((256,), "int32"), B: T.Buffer((1,), "int32")):
    tx = T.launch_thread("threadIdx.x", 256)
    s = T.allocate([256], "int32", "shared")
    s[tx] = A[tx]
    for i in range(8):
        T.cuda.cta_sync()
        if tx < 128 >> i:
            s[tx] = s[tx] + s[tx + (128 >> i)]
    T.cuda.cta_sync()
    if tx == 0:
        B[0] = s[0]
