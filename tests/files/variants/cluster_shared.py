# The four blocks of a cluster sum a row, each a quarter of it.
# arch: sm_90a
@T.prim_func
def sum_of_long_rows(A_ptr: T.handle, B_ptr: T.handle):
    A = T.match_buffer(A_ptr, (2, 4096), "float32")
    B = T.match_buffer(B_ptr, (2,), "float32")
    T.device_entry(); row = T.cluster_id([2]); part = T.cta_id_in_cluster([4]); T.thread_id([128])
    Tx.cluster.sum(B[row], A[row, part * 1024:part * 1024 + 1024], axes=(-1,), accum=False)
