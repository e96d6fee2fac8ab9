# Words that a remark on the loop lets leave the caches before others, and one behind the loop that it says nothing of.
@T.prim_func
def sweep(A: T.Buffer((8192,), "float32"), H: T.Buffer((8192,), "float16"), L: T.Buffer((8192,), "int64"), B: T.Buffer((8192,), "float32"), C: T.Buffer((256,), "float32")):
    bx = T.launch_thread("blockIdx.x", 8)
    tx = T.launch_thread("threadIdx.x", 32)
    word = T.allocate([4], "float32", "local")
    half = T.allocate([8], "float16", "local")
    long = T.allocate([2], "int64", "local")
    acc = T.allocate([1], "float32", "local")
    acc[0] = T.float32(0)
    with T.attr(None, "pragma_stream", 1):
        for turn in range(4):
            word[T.Ramp(0, 1, 4)] = A[T.Ramp(bx * 1024 + turn * 128 + tx * 4, 1, 4)]
            half[T.Ramp(0, 1, 8)] = H[T.Ramp(bx * 1024 + turn * 256 + tx * 8, 1, 8)]
            long[T.Ramp(0, 1, 2)] = L[T.Ramp(bx * 1024 + turn * 64 + tx * 2, 1, 2)]
            acc[0] = acc[0] + word[0] + word[3] + T.Cast("float32", half[7]) + T.Cast("float32", long[1])
            B[T.Ramp(bx * 1024 + turn * 128 + tx * 4, 1, 4)] = word[T.Ramp(0, 1, 4)]
    word[T.Ramp(0, 1, 4)] = A[T.Ramp(bx * 1024 + 512 + tx * 4, 1, 4)]
    C[bx * 32 + tx] = acc[0] + word[2]
