# test: run device=cpu
# test: run device=cpu_exec
# given: A[2, 3] = 1 2 3 4 5 6
@T.prim_func
def row_sum(A_ptr: T.handle, B_ptr: T.handle):
    n, m = T.int32(), T.int32()
    A = T.match_buffer(A_ptr, (n, m), "float32")
    B = T.match_buffer(B_ptr, (n,), "float32")
    for i in range(n):
        B[i] = T.float32(0)
        for k in range(m):
            B[i] = B[i] + A[i, k]

# prints:
#   B float32 [2]: 6 15
