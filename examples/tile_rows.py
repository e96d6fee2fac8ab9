# Two rows a block, one a warp: each lane folds every 32nd element, and the lanes of a warp fold their sums.
#
#   coulis run examples/tile_rows.py --device sim --random 7 --arg n=5 --arg m=70
#   coulis explain examples/tile_rows.py --target cuda --arch sm_100a
#   coulis lower examples/tile_rows.py --target cuda --arch sm_100a --emit cuda
@T.prim_func
def tile_rows(A_ptr: T.handle, B_ptr: T.handle):
    n, m = T.int32(), T.int32()
    A = T.match_buffer(A_ptr, (n, m), "float32")
    B = T.match_buffer(B_ptr, (n,), "float32")
    T.device_entry()
    bx = T.cta_id([(n + 1) // 2])
    warp = T.warp_id([2])
    lane = T.lane_id([32])
    row = T.meta_var(bx * 2 + warp)
    part = T.alloc_local([1], "float32")
    part[0] = T.float32(0)
    if row < n:
        for k in T.serial((m + 31) // 32):
            if k * 32 + lane < m:
                part[0] = part[0] + A[row, k * 32 + lane]
        total = T.cuda.warp_sum(part[0])
        if lane == 0:
            B[row] = total
