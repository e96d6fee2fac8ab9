# A block copies three rows of seven, which 32 threads do not divide.
# arch: sm_90a
@T.prim_func
def to_shared_and_back(A_ptr: T.handle, B_ptr: T.handle):
    A = T.match_buffer(A_ptr, (3, 7), "float32")
    B = T.match_buffer(B_ptr, (3, 7), "float32")
    T.device_entry(); T.cta_id([1]); T.thread_id([32])
    tile = T.alloc_buffer((3, 7), "float32", scope="shared")
    Tx.cta.copy(tile, A); T.cuda.cta_sync()
    Tx.cta.copy(B, tile)
