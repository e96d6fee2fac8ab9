# A sixteenth of an element of 16 bits is exact, and so is a product of two halves: each is added, or something taken off it, in one
# operation. Three times an element is not.
@T.prim_func
def sums(A: T.Buffer((256,), "bfloat16"), H: T.Buffer((256,), "float16"), B: T.Buffer((256,), "float32"), C: T.Buffer((256,), "float32")):
    tx = T.launch_thread("threadIdx.x", 256)
    acc = T.allocate([2], "float32", "local")
    acc[0] = T.Cast("float32", A[tx]) * T.float32(0.0625)
    acc[0] = acc[0] + T.Cast("float32", A[255 - tx]) * T.float32(0.0625)
    acc[1] = T.Cast("float32", A[tx]) * T.float32(0.0625) - acc[0]
    acc[1] = T.Cast("float32", H[tx]) * T.Cast("float32", H[255 - tx]) + acc[1]
    B[tx] = acc[0] + T.Cast("float32", A[tx]) * T.float32(3)
    C[tx] = acc[1]
