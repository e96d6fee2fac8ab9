# Every thread of a block gets the sum of its four warps.
# arch: sm_90a
@T.prim_func
def sum_of_block(A_ptr: T.handle, B_ptr: T.handle):
    A = T.match_buffer(A_ptr, (128,), "float32")
    B = T.match_buffer(B_ptr, (128,), "float32")
    T.device_entry(); T.cta_id([1])
    tid = T.thread_id([128])
    scratch = T.alloc_shared([4], "float32")
    B[tid] = T.cuda.cta_sum(A[tid], 4, scratch.data)
