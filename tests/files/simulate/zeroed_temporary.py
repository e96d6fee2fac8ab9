# test: simulate
# A temporary that is zero at the start may be read.
@T.prim_func
def good(B: T.Buffer((4,), "uint32")):
    with T.attr(None, "zeroed", T.bool(True)):
        C = T.allocate([1], "uint32", "global")
        bx = T.launch_thread("blockIdx.x", 4)
        t = T.allocate([1], "uint32", "local")
        t[0] = T.cuda.atomic_add(C[0], T.uint32(1))
        B[T.Cast("int32", t[0])] = T.uint32(7)

@T.prim_func
def bad(B: T.Buffer((4,), "uint32")):
    C = T.allocate([1], "uint32", "global")
    bx = T.launch_thread("blockIdx.x", 4)
    t = T.allocate([1], "uint32", "local")
    t[0] = T.cuda.atomic_add(C[0], T.uint32(1))  # error read of unwritten memory: thread (0, 0, 0) of block (0, 0, 0) reads element 0 of `C`, which nothing has written
    B[bx] = t[0]  # error result depends on the order of warps: element 0 of `B` has other bits when warps run in another order
