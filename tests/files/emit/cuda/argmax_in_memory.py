# The fold stays in memory that it reads and writes, so no pointer is said to be alone.
@T.prim_func
def argmax(A: T.Buffer((9, 7), "float64"), B: T.Buffer((9,), "float64"), I: T.Buffer((9,), "int32")):
    blockIdx_x = T.launch_thread("blockIdx.x", 9)
    A_1 = T.Buffer((63,), "float64", data=A.data)
    B[blockIdx_x] = T.float64("-inf")
    I[blockIdx_x] = 2147483647
    for l in range(7):
        I_new: T.int32 = T.if_then_else(B[blockIdx_x] > A_1[blockIdx_x * 7 + l] or I[blockIdx_x] < l and B[blockIdx_x] == A_1[blockIdx_x * 7 + l], I[blockIdx_x], l)
        B[blockIdx_x] = T.if_then_else(B[blockIdx_x] > A_1[blockIdx_x * 7 + l] or I[blockIdx_x] < l and B[blockIdx_x] == A_1[blockIdx_x * 7 + l], B[blockIdx_x], A_1[blockIdx_x * 7 + l])
        I[blockIdx_x] = I_new
