# test: verify
@T.prim_func
def past(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        B[i] = A[i]
    for i in range(8):
        B[i] = A[i + 8]  # error V12: index `i + 8` of `A` comes to 8, and legal ones are 0 to 7
