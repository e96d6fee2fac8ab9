# test: simulate inout=S orders=3
# Atomic updates do not race, and yet a sum of floats, or who comes first, depends on the order.
@T.prim_func
def bad(S: T.Buffer((1,), "float32"), B: T.Buffer((4,), "int32")):
    bx = T.launch_thread("blockIdx.x", 4)
    tx = T.launch_thread("threadIdx.x", 256)
    T.cuda.atomic_add(S[0], T.float32(1) / T.Cast("float32", tx + bx + 1))  # error result depends on the order of warps: element 0 of `S` has other bits when warps run in another order

@T.prim_func
def good(S: T.Buffer((1,), "int32"), B: T.Buffer((4,), "int32")):
    bx = T.launch_thread("blockIdx.x", 4)
    tx = T.launch_thread("threadIdx.x", 256)
    T.cuda.atomic_add(S[0], tx + bx + 1)
    T.cuda.atomic_max(S[0], 5)
