# test: lower
# error lower: unrolling loop `i` needs a constant extent, got `n`
@T.prim_func(form="Nest")
def symbolic(A_ptr: T.handle, n: T.int32):
    A = T.match_buffer(A_ptr, (n,), "float32")
    for i in T.unroll(n):
        A[i] = T.float32(0)
