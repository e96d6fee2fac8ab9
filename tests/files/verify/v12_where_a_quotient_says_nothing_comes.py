# test: verify
# Where a quotient is computed its divisor is not 0, so that none of a size is negative and nothing under that is reached.
@T.prim_func
def never(A: T.Buffer((5,), "int32"), W_ptr: T.handle, B: T.Buffer((1,), "int32")):
    n = T.int32(is_size_var=True)
    W = T.match_buffer(W_ptr, (n,), "int32")
    for i in range(4):
        if i // n < 0:
            B[0] = A[i // n + 5]
        B[0] = T.if_then_else(i // n < 0, A[i // n + 5], 0)
        if i // n >= 0:
            B[0] = A[i // n + 5]  # error V12: index `i // n + 5` of `A` comes to 5, and legal ones are 0 to 4
