# test: simulate
@T.prim_func
def bad(A: T.Buffer((32,), "int32"), B: T.Buffer((32,), "int32"), D: T.Buffer((32,), "int32")):
    tx = T.launch_thread("threadIdx.x", 32)
    B[tx] = 100 // A[tx]  # error division by zero: thread (8, 0, 0) of block (0, 0, 0) divides an integer by zero
    D[tx] = 1 << tx + A[tx]

@T.prim_func
def good(A: T.Buffer((32,), "int32"), B: T.Buffer((32,), "int32"), D: T.Buffer((32,), "int32")):
    tx = T.launch_thread("threadIdx.x", 32)
    B[tx] = T.if_then_else(A[tx] == 0, 0, 100 // A[tx])
    D[tx] = T.Select(A[tx] == 0, 1 << tx % 32, 100 // A[tx])
