# test: parse
@T.prim_func
def f(A: T.Buffer((4,), "float32")):
    A[0] = T.float32(0)
      A[1] = T.float32(0)  # error parse: not Python syntax: Unexpected indentation
