# test: parse
@T.prim_func
def f(A: T.Buffer((4,), "float32")):
    for i in range(4):
        A[j] = T.float32(0)  # error parse: nothing named `j` is in scope
