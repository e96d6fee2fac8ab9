# test: run device=cpu
# test: run device=cpu_exec
# given: A[4] = 127 1 -128 -1
@T.prim_func
def wrap(A: T.Buffer((4,), "int8"), B: T.Buffer((1,), "int8")):
    B[0] = T.int8(0)
    for i in range(2):
        B[0] = B[0] + A[i]

# prints:
#   B int8 [1]: -128
