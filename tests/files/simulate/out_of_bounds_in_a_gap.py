# test: simulate n=3 m=4 row=6
# Rows are 6 apart and 4 long: elements 4 and 5 lie between two rows.
@T.prim_func
def bad(A_ptr: T.handle, B_ptr: T.handle):
    n, m = T.int32(), T.int32()
    A = T.match_buffer(A_ptr, (n, m), strides=("row", 1))
    B = T.match_buffer(B_ptr, (n,))
    tx = T.launch_thread("threadIdx.x", n)
    B[tx] = T.float32(0)
    for k in range(m + 1):
        if tx * A.strides[0] + k < n * A.strides[0] - 2:
            A_1 = T.Buffer((A.strides[0] * n,), data=A.data)
            B[tx] = B[tx] + A_1[tx * A.strides[0] + k]  # error access out of bounds: thread (0, 0, 0) of block (0, 0, 0) accesses element 4 of `A`, which is in a gap that its strides leave (2 times)

@T.prim_func
def good(A_ptr: T.handle, B_ptr: T.handle):
    n, m = T.int32(), T.int32()
    A = T.match_buffer(A_ptr, (n, m), strides=("row", 1))
    B = T.match_buffer(B_ptr, (n,))
    tx = T.launch_thread("threadIdx.x", n)
    B[tx] = T.float32(0)
    for k in range(m):
        A_1 = T.Buffer((A.strides[0] * n,), data=A.data)
        B[tx] = B[tx] + A_1[tx * A.strides[0] + k]
