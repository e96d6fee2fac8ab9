# One thread finds the largest of 32 halves in its registers, two at once.
# arch: sm_90a
@T.prim_func
def packed_max32(A_ptr: T.handle, B_ptr: T.handle):
    A = T.match_buffer(A_ptr, (32,), "float16")
    B = T.match_buffer(B_ptr, (1,), "float16")
    T.device_entry(); T.cta_id([1]); T.thread_id([1])
    A_local = T.alloc_buffer((32,), "float16", scope="local")
    B_local = T.alloc_buffer((1,), "float16", scope="local")
    Tx.copy(A_local, A)
    Tx.max(B_local, A_local, accum=False)
    B[0] = B_local[0]
