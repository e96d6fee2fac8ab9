# test: parse form=tiled
# The scheduled row sum of seed 003 as a tile program, before dispatch: imports, views made on the spot, bare literals.
from coulis.script import tirx as T, tile as Tx


@T.prim_func
def row_sum(A_ptr: T.handle, B_ptr: T.handle):
    """One warp a row."""
    n, m = T.int32(), T.int32()
    A = T.match_buffer(A_ptr, (n, m), "float32")
    B = T.match_buffer(B_ptr, (n,), "float32")
    T.device_entry()
    bx = T.cta_id([(n + 7) // 8])
    warp = T.warp_id([8])
    lane = T.lane_id([32])
    part = T.alloc_buffer([32], "float32", scope="local", layout=TileLayout(S[32 : 1 @ laneid]))
    total = T.alloc_buffer([1], "float32", scope="local", layout=TileLayout(S[1 : 1] + R[32 : 1 @ laneid]))
    mine = part.local(1)
    mine[0] = 0
    for k in T.serial((m + 31) // 32):
        if bx * 8 + warp < n and k * 32 + lane < m:
            mine[0] += A[bx * 8 + warp, k * 32 + lane]
    Tx.warp.sum(total, part, axes=(0,), accum=False)
    if lane == 0 and bx * 8 + warp < n:
        B[bx * 8 + warp] = total.local(1)[0]

# prints:
#   @T.prim_func
#   def row_sum(A_ptr: T.handle, B_ptr: T.handle):
#       n, m = T.int32(), T.int32()
#       A = T.match_buffer(A_ptr, (n, m), "float32")
#       B = T.match_buffer(B_ptr, (n,), "float32")
#       T.device_entry()
#       bx = T.cta_id([(n + 7) // 8])
#       warp = T.warp_id([8])
#       lane = T.lane_id([32])
#       part = T.alloc_buffer((32,), "float32", scope="local", layout=TileLayout(S[32 : 1 @ laneid]))
#       total = T.alloc_buffer((1,), "float32", scope="local", layout=TileLayout(S[1] + R[32 : 1 @ laneid]))
#       mine = part.local(1)
#       mine[0] = T.float32(0)
#       for k in range((m + 31) // 32):
#           if bx * 8 + warp < n and k * 32 + lane < m:
#               mine[0] = mine[0] + A[bx * 8 + warp, k * 32 + lane]
#       Tx.warp.sum(total, part, axes=(0,), accum=False)
#       if lane == 0 and bx * 8 + warp < n:
#           total_local = total.local(1)
#           B[bx * 8 + warp] = total_local[0]
