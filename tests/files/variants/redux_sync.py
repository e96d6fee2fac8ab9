# Every lane of a warp gets the largest of 32 integers.
# arch: sm_90a
@T.prim_func
def warp_max(A_ptr: T.handle, B_ptr: T.handle):
    A = T.match_buffer(A_ptr, (32,), "int32")
    B = T.match_buffer(B_ptr, (32,), "int32")
    T.device_entry(); T.cta_id([1]); T.thread_id([32])
    lane = T.lane_id([32])
    part = T.alloc_buffer((32,), "int32", scope="local", layout=TileLayout(S[32 : 1 @ laneid]))
    total = T.alloc_buffer((1,), "int32", scope="local", layout=TileLayout(S[1 : 1] + R[32 : 1 @ laneid]))
    part_own = part.local(1)
    total_own = total.local(1)
    part_own[0] = A[lane]
    Tx.warp.max(total, part, axes=(-1,), accum=False)
    B[lane] = total_own[0]
