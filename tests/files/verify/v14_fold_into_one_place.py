# test: verify
@T.prim_func
def total(A: T.Buffer((8,), "float32"), B: T.Buffer((1,), "float32")):
    B[0] = T.float32(0)
    for i in T.parallel(8):
        B[0] = B[0] + A[i]  # error V14: iterations of the parallel loop `i` fold into one element of `B`; give each its own partial result
