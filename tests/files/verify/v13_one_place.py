# test: verify
# Iterations of a parallel loop store to one place.
@T.prim_func
def one_place(A: T.Buffer((8,), "float32"), B: T.Buffer((1,), "float32")):
    for i in T.parallel(8):
        B[0] = A[i]  # error V13: iterations of the parallel loop `i` store to one element of `B`
