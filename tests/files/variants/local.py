# Seed 001: one thread sums four of its registers.
# arch: sm_90a
@T.prim_func
def local_sum4(A_ptr: T.handle, B_ptr: T.handle):
    A = T.match_buffer(A_ptr, [4], "float32", layout=TileLayout(S[(4,)]))
    B = T.match_buffer(B_ptr, [1], "float32", layout=TileLayout(S[(1,)]))
    T.device_entry(); T.cta_id([1]); T.thread_id([1])
    A_local = T.alloc_buffer([4], "float32", scope="local")
    B_local = T.alloc_buffer([1], "float32", scope="local")
    for i in T.serial(4): A_local[i] = A[i]
    Tx.sum(B_local, A_local, accum=False)
    B[0] = B_local[0]
