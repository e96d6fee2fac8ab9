# test: lower after=simplify_flat
# The seven lanes that pass are halves of the sixteen as far as there are any; an unknown number of them is fewer kinds of vectors.
# check: B[0:4] = A[0:4]
# check: B[4:6] = A[4:6]
# check: B[6] = A[6]
# check: for i_s in range
# check: for i_s in range
@T.prim_func(form="Nest")
def guarded(n: T.int32, A: T.Buffer((7,), "int32"), B: T.Buffer((16,), "int32"), C: T.Buffer((16,), "int32")):
    for i in T.vectorized(16):
        if i < 7:
            B[i] = A[i]
    for i in T.vectorized(16):
        if i < n:
            C[i] = B[i]
