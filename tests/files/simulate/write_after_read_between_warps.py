# test: simulate
# The second turn of the loop writes what another warp may not have read yet.
@T.prim_func
def bad(A: T.Buffer((128,), "int32"), B: T.Buffer((128,), "int32")):
    tx = T.launch_thread("threadIdx.x", 64)
    s = T.allocate([64], "int32", "shared")
    for i in range(2):
        s[tx] = A[i * 64 + tx]  # error race between warps: thread (63, 0, 0) of block (0, 0, 0) reads and thread (0, 0, 0) of block (0, 0, 0) writes element 0 of `s`, and no barrier orders them (32 times)
        T.cuda.cta_sync()
        B[i * 64 + tx] = s[63 - tx]  # error race between warps: thread (63, 0, 0) of block (0, 0, 0) writes and thread (0, 0, 0) of block (0, 0, 0) reads element 63 of `s`, and no barrier orders them (32 times)
        # error result depends on the order of warps: element 0 of `B` has other bits when warps run in another order

@T.prim_func
def good(A: T.Buffer((128,), "int32"), B: T.Buffer((128,), "int32")):
    tx = T.launch_thread("threadIdx.x", 64)
    s = T.allocate([64], "int32", "shared")
    for i in range(2):
        s[tx] = A[i * 64 + tx]
        T.cuda.cta_sync()
        B[i * 64 + tx] = s[63 - tx]
        T.cuda.cta_sync()
