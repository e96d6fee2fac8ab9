# Four rows of eight threads: a warp holds them, each row with a mask of its own lanes.
# test: lower after=dispatch_tiles target=sm_90a
# check: red_buf0 = T.allocate([1], "float32", "local")
# check: mask[0] = T.uint32(4294967295)
# check: t0[0] = T.tvm_warp_shuffle_down(mask[0], red_buf0[0], 4, 32, 32)
# check: red_buf0[0] = T.tvm_warp_shuffle(mask[0], red_buf0[0], ty * 8, 32, 32)
# check: B[ty] = red_buf0[0]
@T.prim_func
def rows(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4,), "float32")):
    ty = T.launch_thread("threadIdx.y", 4)
    tx = T.launch_thread("threadIdx.x", 8)
    red_buf0 = T.alloc_buffer([4, 8], "float32", scope="local", layout=TileLayout(S[(4, 8) : (8 @ tx, 1 @ tx)]))
    mine = red_buf0.local(1)
    mine[0] = A[ty, tx]
    total = red_buf0.view(4, layout=TileLayout(S[4 : 8 @ tx] + R[8 : 1 @ tx]))
    Tx.cta.reduce(total, red_buf0, reducer=T.comm_reducer(lambda x, y: x + y, [T.float32(0)]), axes=(1,), accum=False)
    whole = total.local(1)
    if tx == 0:
        B[ty] = whole[0]
