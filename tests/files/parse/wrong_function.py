# test: parse
@T.prim_func
def f(A: T.Buffer((4,), "float32")):
    A[0] = T.sinus(A[1])  # error parse: unknown function `T.sinus`; legal here: the functions of `T` that have a value: constants, `T.max`, `T.Cast`, `T.Select`, `T.exp`, ...
