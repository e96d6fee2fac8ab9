# test: parse
@T.prim_func
def f(A: T.Buffer((4,), "float31")):  # error parse: unknown dtype `float31`; legal dtypes are bool, int8 to int64, uint8 to uint64, float16, bfloat16, float32, float64, float8_e4m3, float8_e5m2, and short names of these such as i32, bf16 and f64
    A[0] = T.float32(0)
