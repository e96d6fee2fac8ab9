# test: run device=cpu
# given: A[3] = 1 2 3
# error call/arguments: extent 0 of argument `A` is to be 4, got 3
@T.prim_func
def f(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    for i in range(4):
        B[i] = A[i]
