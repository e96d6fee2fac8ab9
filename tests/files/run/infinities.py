# test: run device=cpu
# test: run device=cpu_exec
# given: A[6] = 1 0 inf -inf -0.0 2.5
@T.prim_func
def extrema(A: T.Buffer((6,), "float32"), B: T.Buffer((2,), "float32")):
    B[0] = T.float32("-inf")
    B[1] = T.float32("inf")
    for i in range(6):
        B[0] = T.max(B[0], A[i])
        B[1] = T.min(B[1], A[i])

# prints:
#   B float32 [2]: inf -inf
