# Pairs added at once, and extrema of three: one instruction each on machines that have them.
@T.prim_func
def three_inputs(A: T.Buffer((1024,), "float32"), B: T.Buffer((512,), "float32")):
    bx = T.launch_thread("blockIdx.x", 2)
    tx = T.launch_thread("threadIdx.x", 64)
    acc = T.allocate([4], "float32", "local")
    row: T.int32 = bx * 512 + tx * 8
    acc[T.Ramp(0, 1, 4)] = A[T.Ramp(row, 1, 4)]
    acc[T.Ramp(0, 1, 4)] = acc[T.Ramp(0, 1, 4)] + A[T.Ramp(row + 4, 1, 4)]
    B[bx * 256 + tx * 4] = acc[0] + acc[1] + (acc[2] + acc[3])
    B[bx * 256 + tx * 4 + 1] = T.max3(acc[0], acc[1], acc[2])
    B[bx * 256 + tx * 4 + 2] = T.min3(acc[1], acc[2], acc[3])
    B[bx * 256 + tx * 4 + 3] = acc[3]
