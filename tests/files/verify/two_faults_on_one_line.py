# test: verify
@T.prim_func
def two(A: T.Buffer((8,), "float32"), B: T.Buffer((4,), "float32")):
    A[8] = B[4]  # error V12: index `4` of `B` comes to 4, and legal ones are 0 to 3
    # error V12: index `8` of `A` comes to 8, and legal ones are 0 to 7
