# test: lower after=vectorize_loops
# Lanes that the branch keeps out may be outside of `A`, and never of `C`.
# check: for i_s in range(8)
# check: if i_s < Z[i_s]
# check: B[i_s] = A[i_s]
# check: B[0:8] = T.Select(C[0:8] < Z[0:8], C[0:8], B[0:8])
@T.prim_func(form="Nest")
def guarded(Z: T.Buffer((8,), "int32"), A: T.Buffer((5,), "int32"), B: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
    for i in T.vectorized(8):
        if i < Z[i]:
            B[i] = A[i]
    for i in T.vectorized(8):
        if C[i] < Z[i]:
            B[i] = C[i]
