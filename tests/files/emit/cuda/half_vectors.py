# Words of 16 bytes: eight halves a load, sums in pairs of float32, a tail that no word covers.
@T.prim_func
def scale(A: T.handle, B: T.handle, n: T.int32):
    rows = T.int32(is_size_var=True)
    A_1 = T.match_buffer(A, (rows * 8,), "float16")
    B_1 = T.match_buffer(B, (rows * 8,), "float32")
    bx = T.launch_thread("blockIdx.x", (rows + 255) // 256)
    tx = T.launch_thread("threadIdx.x", 256)
    acc = T.allocate([8], "float32", "local")
    if bx * 256 + tx < rows:
        acc[T.Ramp(0, 1, 8)] = T.Broadcast(T.float32(0), 8)
        acc[T.Ramp(0, 1, 8)] = acc[T.Ramp(0, 1, 8)] + T.Cast("float32x8", A_1[T.Ramp((bx * 256 + tx) * 8, 1, 8)])
        B_1[T.Ramp((bx * 256 + tx) * 8, 1, 8)] = acc[T.Ramp(0, 1, 8)] * T.Broadcast(T.Cast("float32", n), 8)
