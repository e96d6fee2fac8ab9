# test: run device=cpu_exec
# test: run device=cpu
# given: I[3] = 0 4 7
# given: A[5] = 1 2 3 4 5
# error run/bounds: index 7 of `A` is outside of [0, 5)
@T.prim_func
def gather(A: T.Buffer((5,), "float32"), I: T.Buffer((3,), "int32"), B: T.Buffer((3,), "float32")):
    for i in range(3):
        B[i] = A[I[i]]
