# test: verify
# What V13 and V14 allow: each iteration has a place of its own.
@T.prim_func
def rows(A: T.Buffer((8, 4), "float32"), B: T.Buffer((8,), "float32")):
    for i in T.parallel(8):
        B[i] = T.float32(0)
        for k in range(4):
            B[i] = B[i] + A[i, k]
