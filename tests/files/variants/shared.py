# Seed 000: a block of 32 threads sums each row of a 4x8 tile in shared memory.
# arch: sm_90a
@T.prim_func
def shared_row_sum(A_ptr: T.handle, B_ptr: T.handle):
    A = T.match_buffer(A_ptr, (4, 8), "float32", layout=TileLayout(S[(4, 8)]))
    B = T.match_buffer(B_ptr, (4,), "float32", layout=TileLayout(S[(4,)]))
    T.device_entry(); T.cta_id([1]); T.thread_id([32])
    A_smem = T.alloc_buffer((4, 8), "float32", scope="shared", layout=TileLayout(S[(4, 8)]))
    B_smem = T.alloc_buffer((4,), "float32", scope="shared", layout=TileLayout(S[(4,)]))
    Tx.cta.copy(A_smem, A); T.cuda.cta_sync()
    Tx.cta.sum(B_smem, A_smem, axes=(-1,), accum=False)
    T.cuda.cta_sync()
    Tx.cta.copy(B, B_smem)
