# test: simulate n=5
# Bounds are those of the parameter, not those that the flat alias is printed with.
@T.prim_func
def bad(A_ptr: T.handle, B_ptr: T.handle):
    n = T.int32()
    A = T.match_buffer(A_ptr, (n,))
    B = T.match_buffer(B_ptr, (n,))
    tx = T.launch_thread("threadIdx.x", 8)
    B_1 = T.Buffer((8,), data=B.data)
    A_1 = T.Buffer((8,), data=A.data)
    B_1[tx] = A_1[tx]  # error access out of bounds: thread (5, 0, 0) of block (0, 0, 0) accesses element 5 of `A`, whose elements are 0 to 4 (3 times)
    # error access out of bounds: thread (5, 0, 0) of block (0, 0, 0) accesses element 5 of `B`, whose elements are 0 to 4 (3 times)

@T.prim_func
def good(A_ptr: T.handle, B_ptr: T.handle):
    n = T.int32()
    A = T.match_buffer(A_ptr, (n,))
    B = T.match_buffer(B_ptr, (n,))
    tx = T.launch_thread("threadIdx.x", 8)
    if tx < n:
        B_1 = T.Buffer((8,), data=B.data)
        A_1 = T.Buffer((8,), data=A.data)
        B_1[tx] = A_1[tx]

@T.prim_func
def bad_local_and_shared(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    tx = T.launch_thread("threadIdx.x", 8)
    x = T.allocate([4], "int32", "local")
    s = T.allocate([8], "int32", "shared")
    x[A[tx] // 3] = 1  # error access out of bounds: thread (0, 0, 0) of block (0, 0, 0) accesses element -2 of `x`, which has 4 (4 times)
    s[A[tx] - 4] = 2  # error access out of bounds: thread (0, 0, 0) of block (0, 0, 0) accesses element -8 of `s`, whose elements are 0 to 7 (5 times)
    B[tx] = A[tx]

@T.prim_func
def good_by_short_circuit(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
    tx = T.launch_thread("threadIdx.x", 8)
    if tx > 0 and A[tx - 1] > -4:
        B[tx] = T.if_then_else(tx < 7, A[T.min(tx + 1, 7)], 0)
