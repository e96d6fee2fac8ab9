# test: lower
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
#   @T.prim_func
#   def row_sum(A_ptr: T.handle, B_ptr: T.handle):
#       n, m = T.int32(), T.int32()
#       A = T.match_buffer(A_ptr, (n, m))
#       B = T.match_buffer(B_ptr, (n,))
#       for i in range(n):
#           B[i] = T.float32(0)
#           for k in range(m):
#               A_1 = T.Buffer((n * m,), data=A.data)
#               B[i] = B[i] + A_1[i * m + k]
