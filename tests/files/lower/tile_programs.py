# A block of two warps. Its ids are launched; one tile goes to shared memory as vectors of 16 bytes and on to another that
# is laid out by columns; of two barriers one is kept; each eight neighbours fold, by a mask of their own lanes.
# test: lower after=dispatch_tiles target=sm_90a
# check: tid = T.launch_thread("threadIdx.x", 64)
# check: tile = T.allocate([8, 32], "float32", "shared")
# check: turned = T.allocate([256], "float32", "shared")
# check: for round in range(1):
# check: for lane in T.vectorized(4):
# check: T.cuda.cta_sync()
# check: turned[(round * 64 + tid) // 32 + (round * 64 + tid) % 32 * 8] = tile[(round * 64 + tid) // 32, (round * 64 + tid) % 32]
# check: T.cuda.cta_sync()
# check: across[0] = turned[tid // 8 + (tid % 8 * 4 + tid // 32) * 8]
# check: mask[0] = T.uint32(4294967295)
# check: t0[0] = T.tvm_warp_shuffle_down(mask[0], across[0], 4, 32, 32)
# check: x: T.float32 = across[0]
# check: B[bx, tid] = x
@T.prim_func
def rows(A_ptr: T.handle, B_ptr: T.handle):
    A = T.match_buffer(A_ptr, (3, 8, 32), "float32", layout=TileLayout(S[(3, 8, 32)]))
    B = T.match_buffer(B_ptr, (3, 64), "float32")
    T.device_entry()
    bx = T.cta_id([3])
    tid = T.thread_id([64])
    warp = T.warp_id()
    tile = T.alloc_shared((8, 32), "float32")
    turned = T.alloc_buffer((8, 32), "float32", scope="shared", layout=TileLayout(S[(8, 32) : (1, 8)]))
    Tx.cta.copy(tile, A[bx, :, :])
    T.cuda.cta_sync()
    T.cuda.cta_sync()
    Tx.cta.copy(turned, tile)
    T.cuda.cta_sync()
    row = T.meta_var(tid // 8)
    x = T.cuda.warp_sum(turned[row, tid % 8 * 4 + warp], 8)
    B[bx, tid] = x
