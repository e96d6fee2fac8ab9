# test: parse
@T.prim_func
def wrong_type(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "int32")):
    for i in range(8):
        A[i] = B[i]  # error parse: a stored value: found int32; legal: float32
