# test: run device=cpu
# test: run device=cpu_exec
# given: A[6] = 6 5 0 -3 0 1
@T.prim_func
def divide(A: T.Buffer((6,), "int32"), B: T.Buffer((6,), "int32"), C: T.Buffer((6,), "int32")):
    for i in range(6):
        B[i] = T.Select(A[i] != 0, 12 // A[i], -1)
    for j in T.vectorized(6):
        C[j] = T.Select(A[j] != 0, 12 // A[j], -1)

# prints:
#   B int32 [6]: 2 2 -1 -4 -1 12
#   C int32 [6]: 2 2 -1 -4 -1 12
