# Every thread gets the sum of the eight neighbours that it is one of.
# arch: sm_90a
@T.prim_func
def sum_of_eight(A_ptr: T.handle, B_ptr: T.handle):
    A = T.match_buffer(A_ptr, (64,), "float32")
    B = T.match_buffer(B_ptr, (64,), "float32")
    T.device_entry(); T.cta_id([1])
    tid = T.thread_id([64])
    B[tid] = T.cuda.warp_sum(A[tid], 8)
