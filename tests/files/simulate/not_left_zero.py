# test: simulate
# Memory that a call leaves zero is not filled before the next: the last block puts the counter back.
@T.prim_func
def good(B: T.Buffer((4,), "uint32")):
    with T.attr(None, "zeroed", "left"):
        C = T.allocate([1], "uint32", "global")
        bx = T.launch_thread("blockIdx.x", 4)
        t = T.allocate([1], "uint32", "local")
        t[0] = T.cuda.atomic_add(C[0], T.uint32(1))
        B[bx] = T.uint32(7)
        if t[0] == T.uint32(3):
            C[0] = T.uint32(0)

@T.prim_func
def bad(B: T.Buffer((4,), "uint32")):
    with T.attr(None, "zeroed", "left"):
        C = T.allocate([1], "uint32", "global")
        bx = T.launch_thread("blockIdx.x", 4)
        t = T.allocate([1], "uint32", "local")
        t[0] = T.cuda.atomic_add(C[0], T.uint32(1))  # error memory not left zero: `C` is said to be left zero for the next call, and is not
        B[bx] = T.uint32(7)
