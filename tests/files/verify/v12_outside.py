# test: verify
# A constant index past the end is a fault; the last element is not.
@T.prim_func
def outside(A: T.Buffer((8,), "float32")):
    A[7] = T.float32(0)
    A[8] = T.float32(0)  # error V12: index `8` of `A` comes to 8, and legal ones are 0 to 7
