# No row: the launch has no block, so nothing of it is left.
# test: lower target=sm_90a
@T.prim_func
def reduce(A: T.handle, O: T.handle):
    T.func_attr({"from_legacy_te_schedule": T.bool(True), "global_symbol": "reduce", "tir.noalias": T.bool(True)})
    A_1 = T.match_buffer(A, (T.int64(0), T.int64(5)), "float32", strides=(T.int64(5), T.int64(1)))
    O_1 = T.match_buffer(O, (T.int64(0),), "float32", strides=(T.int64(1),))
    blockIdx_x = T.launch_thread("blockIdx.x", T.int64(0))
    threadIdx_y = T.launch_thread("threadIdx.y", T.int64(64))
    threadIdx_x = T.launch_thread("threadIdx.x", T.int64(4))
    S = T.allocate([T.int64(0)], "float64", "local")
    for ax0 in range(T.int64(0)):
        S_rf = T.allocate([T.int64(0), T.int64(1)], "float64", "local")
        for i0 in range(T.int64(0)):
            S_rf[i0, T.int64(0)] = T.float64(0)
            for k0_outer_inner in T.unroll(T.int64(2)):
                if T.likely(k0_outer_inner * T.int64(4) + threadIdx_x < T.int64(5)):
                    S_rf[i0, T.int64(0)] = S_rf[i0, T.int64(0)] + T.Cast("float64", A_1[i0, k0_outer_inner * T.int64(4) + threadIdx_x])
        red_buf0 = T.alloc_buffer((64, 4), "float64", scope="local", layout=TileLayout(S[(64, 4) : (4 @ tx, 1 @ tx)]))
        mine = red_buf0.local(1)
        mine[0] = S_rf[ax0, T.int64(0)]
        total = red_buf0.view(64, layout=TileLayout(S[64 : 4 @ tx] + R[4 : 1 @ tx]))
        Tx.cta.reduce(total, red_buf0, reducer=T.comm_reducer(lambda a_sum, b_sum: a_sum + b_sum, [T.float64(0)]), axes=(1,), accum=False)
        whole = total.local(1)
        S[ax0] = whole[0]
    if threadIdx_x == T.int64(0):
        O_1[blockIdx_x * T.int64(64) + threadIdx_y] = T.Cast("float32", S[blockIdx_x * T.int64(64) + threadIdx_y])

# prints:
#   @T.prim_func
#   def reduce(A: T.handle, O: T.handle):
#       T.func_attr({"from_legacy_te_schedule": T.bool(True), "global_symbol": "reduce", "tir.noalias": T.bool(True)})
#       A_1 = T.match_buffer(A, (T.int64(0), T.int64(5)), strides=(T.int64(5), T.int64(1)))
#       O_1 = T.match_buffer(O, (T.int64(0),), strides=(T.int64(1),))
#       pass
