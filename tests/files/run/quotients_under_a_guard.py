# test: run device=cpu
# test: run device=cpu_exec
# given: A[4] = 3 1 4 1
@T.prim_func
def guarded(A: T.Buffer((4,), "int32"), B: T.Buffer((4, 5), "int32"), C: T.Buffer((4, 5), "int32"), D: T.Buffer((4, 5), "int32")):
    for i in range(4):
        for k in range(5):
            B[i, k] = T.if_then_else(k > 0, i % (20 // k + 1), -1)
            C[i, k] = T.if_then_else(k > 0, k % (i // k + 2), -1)
            D[i, k] = T.if_then_else(k > 0, A[i % (3 // k + 1)], -1)

# prints:
#   B int32 [4, 5]: -1 0 0 0 0 -1 1 1 1 1 -1 2 2 2 2 -1 3 3 3 3
#   C int32 [4, 5]: -1 1 0 1 0 -1 1 0 1 0 -1 1 2 1 0 -1 1 2 0 0
#   D int32 [4, 5]: -1 3 3 3 3 -1 1 1 1 3 -1 4 3 3 3 -1 1 1 1 3
