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
#   @T.prim_func
#   def f(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
#       T.device_entry()
#       T.cta_id([1])
#       t = T.thread_id([64])
#       s = T.alloc_buffer((2,), "float32", scope="shared")
#       across = T.alloc_buffer((1,), "float32", scope="local")
#       across[0] = A[63 - t]
#       Tx.warp.max(across, across, axes=(-1,), accum=False, lanes=8)
#       B[t] = across[0]
#       across_1 = T.alloc_buffer((1,), "float32", scope="local")
#       across_1[0] = A[63 - t]
#       Tx.cta.sum(across_1, across_1, axes=(-1,), accum=False, warps=2)
#       x: T.float32 = across_1[0]
#       B[63 - t] = B[63 - t] + x
