# Functions of coulis' own, a power of two, a root, an infinity and a division by what may be zero.
@T.prim_func
def functions(A: T.Buffer((1024,), "float32"), B: T.Buffer((1024,), "float64"), C: T.Buffer((1024,), "bfloat16")):
    bx = T.launch_thread("blockIdx.x", 4)
    tx = T.launch_thread("threadIdx.x", 256)
    C[bx * 256 + tx] = T.Cast("bfloat16", T.exp(A[bx * 256 + tx]) + T.log(T.exp2(A[bx * 256 + tx])))
    B[bx * 256 + tx] = T.Select(T.isnan(A[bx * 256 + tx]), T.float64("inf"), T.sqrt(T.exp(B[bx * 256 + tx])) + T.float64(0.1))
    A[bx * 256 + tx] = T.Cast("float32", tx // T.Cast("int32", A[bx * 256 + tx]))
