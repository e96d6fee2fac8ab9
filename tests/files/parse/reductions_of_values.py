# test: parse form=tiled
# Reductions of one value a thread print as tile calls on a register; names for expressions are gone.
@T.prim_func
def f(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    T.device_entry(); T.cta_id([1]); t = T.thread_id([64])
    s = T.alloc_shared([2], "float32")
    at = T.meta_var(63 - t)
    B[t] = T.cuda.warp_reduce(A[at], "max", width=8)
    x = T.cuda.cta_sum(A[at], 2, s.data)
    B[at] = B[at] + x

# prints:
