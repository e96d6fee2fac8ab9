# test: run device=cpu
# test: run device=cpu_exec
# given: Z[8] = 5 5 5 5 5 5 5 5
# given: A[5] = 1 2 3 4 5
# given: B[8] = 9 9 9 9 9 9 9 9
@T.prim_func
def guarded(Z: T.Buffer((8,), "int32"), A: T.Buffer((5,), "int32"), B: T.Buffer((8,), "int32")):
    for i in T.vectorized(8):
        if i < Z[i]:
            B[i] = A[i]

# prints:
#   B int32 [8]: 1 2 3 4 5 9 9 9
