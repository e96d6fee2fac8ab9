@T.prim_func
def main(A: T.handle, B: T.handle):
    T.func_attr({"from_legacy_te_schedule": T.bool(True), "global_symbol": "main", "tir.noalias": T.bool(True)})
    n, m = T.int32(), T.int32()
    A_1 = T.match_buffer(A, (n, m), "float32", strides=("stride", "stride"), buffer_type="auto")
    B_1 = T.match_buffer(B, (n,), "float32", strides=("stride",), buffer_type="auto")
    blockIdx_x = T.launch_thread("blockIdx.x", (n + 31) // 32)
    threadIdx_y = T.launch_thread("threadIdx.y", 32)
    threadIdx_x = T.launch_thread("threadIdx.x", 16)
    B_rf = T.allocate([1, 1], "float32", "local")
    B_rf[0, 0] = T.float32(0)
    for k_outer in range((m + 15) // 16):
        if T.likely(blockIdx_x * 32 + threadIdx_y < n):
            if T.likely(k_outer * 16 + threadIdx_x < m):
                B_rf[0, 0] = B_rf[0, 0] + A_1[blockIdx_x * 32 + threadIdx_y, k_outer * 16 + threadIdx_x]
    red_buf0 = T.alloc_buffer((32, 16), "float32", scope="local", layout=TileLayout(S[(32, 16) : (16 @ tx, 1 @ tx)]))
    mine = red_buf0.local(1)
    mine[0] = B_rf[0, 0]
    total = red_buf0.view(32, layout=TileLayout(S[32 : 16 @ tx] + R[16 : 1 @ tx]))
    Tx.cta.reduce(total, red_buf0, reducer=T.comm_reducer(lambda x, y: x + y, [T.float32(0)]), axes=(1,), accum=False)
    whole = total.local(1)
    if threadIdx_x == 0 and blockIdx_x * 32 + threadIdx_y < n:
        B_1[blockIdx_x * 32 + threadIdx_y] = whole[0]
