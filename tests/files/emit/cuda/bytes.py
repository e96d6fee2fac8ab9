# Bytes of words, each taken out and widened by one instruction; registers hold them as 32 bits, but for memory that is read by
# another type as well. A word that is only copied is not taken apart.
@T.prim_func
def extrema(A: T.handle, B: T.handle, C: T.handle):
    rows = T.int32(is_size_var=True)
    A_1 = T.match_buffer(A, (rows * 8,), "int8")
    B_1 = T.match_buffer(B, (rows * 8,), "int8")
    C_1 = T.match_buffer(C, (rows * 2,), "int32")
    bx = T.launch_thread("blockIdx.x", (rows + 255) // 256)
    tx = T.launch_thread("threadIdx.x", 256)
    most = T.allocate([8], "int8", "local")
    both = T.allocate([8], "int8", "local")
    both_1 = T.Buffer((2,), "int32", data=both.data)
    if bx * 256 + tx < rows:
        most[T.Ramp(0, 1, 8)] = T.Broadcast(T.int8(-128), 8)
        most[T.Ramp(0, 1, 8)] = T.max(most[T.Ramp(0, 1, 8)], A_1[T.Ramp((bx * 256 + tx) * 8, 1, 8)])
        both[T.Ramp(0, 1, 8)] = most[T.Ramp(0, 1, 8)] + T.Broadcast(T.int8(1), 8)
        C_1[(bx * 256 + tx) * 2] = both_1[0] + T.Cast("int32", most[0])
        C_1[(bx * 256 + tx) * 2 + 1] = both_1[1]
        B_1[T.Ramp((bx * 256 + tx) * 8, 1, 8)] = A_1[T.Ramp((bx * 256 + tx) * 8, 1, 8)]
