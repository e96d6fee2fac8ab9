# test: simulate
# The leader of each warp adds to what one thread sets to zero before: the first warp's leader is that thread.
@T.prim_func
def bad(A: T.Buffer((128,), "int32"), B: T.Buffer((1,), "int32")):
    tx = T.launch_thread("threadIdx.x", 128)
    s = T.allocate([1], "int32", "shared")
    if tx == 0:
        s[0] = 0
    if tx % 32 == 0:
        T.cuda.atomic_add(s[0], A[tx])  # error race between warps: thread (0, 0, 0) of block (0, 0, 0) writes and thread (32, 0, 0) of block (0, 0, 0) writes element 0 of `s`, and no barrier orders them (3 times)
    T.cuda.cta_sync()
    if tx == 0:
        B[0] = s[0]

@T.prim_func
def bad_read_among_updates(A: T.Buffer((128,), "int32"), B: T.Buffer((1,), "int32")):
    tx = T.launch_thread("threadIdx.x", 128)
    s = T.allocate([1], "int32", "shared")
    if tx == 0:
        s[0] = 0
    T.cuda.cta_sync()
    if tx % 32 == 0:
        T.cuda.atomic_add(s[0], A[tx])  # error race between warps: thread (0, 0, 0) of block (0, 0, 0) reads and thread (32, 0, 0) of block (0, 0, 0) writes element 0 of `s`, and no barrier orders them (2 times)
    if tx == 0:
        B[0] = s[0]  # error result depends on the order of warps: element 0 of `B` has other bits when warps run in another order

@T.prim_func
def good(A: T.Buffer((128,), "int32"), B: T.Buffer((1,), "int32")):
    tx = T.launch_thread("threadIdx.x", 128)
    s = T.allocate([1], "int32", "shared")
    if tx == 0:
        s[0] = 0
    T.cuda.cta_sync()
    if tx % 32 == 0:
        T.cuda.atomic_add(s[0], A[tx])
    T.cuda.cta_sync()
    if tx == 96:
        B[0] = s[0]
