# test: parse canonical
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.handle, B: T.handle):
        T.func_attr({"from_legacy_te_schedule": T.bool(True), "global_symbol": "main", "tir.noalias": T.bool(True)})
        n, m = T.int32(), T.int32()
        A_1 = T.match_buffer(A, (n, m), strides=("stride", "stride"), buffer_type="auto")
        B_1 = T.match_buffer(B, (n,), strides=("stride",), buffer_type="auto")
        blockIdx_x = T.launch_thread("blockIdx.x", (n + 31) // 32)
        threadIdx_y = T.launch_thread("threadIdx.y", 32)
        threadIdx_x = T.launch_thread("threadIdx.x", 16)
        B_rf = T.allocate([1], "float32", "local", align=4)
        red_buf0 = T.allocate([1], "float32", "local", align=4)
        B_rf[0] = T.float32(0)
        A_1_1 = T.Buffer((A_1.strides[0] * n,), data=A_1.data, buffer_type="auto")
        for k_outer in range(m // 16):
            if blockIdx_x * 32 + threadIdx_y < n:
                B_rf[0] = B_rf[0] + A_1_1[(blockIdx_x * 32 + threadIdx_y) * A_1.strides[0] + (k_outer * 16 + threadIdx_x) * A_1.strides[1]]
        for k_outer in range((m % 16 + 15) // 16):
            if blockIdx_x * 32 + threadIdx_y < n:
                if m // 16 * 16 + k_outer * 16 + threadIdx_x < m:
                    B_rf[0] = B_rf[0] + A_1_1[(blockIdx_x * 32 + threadIdx_y) * A_1.strides[0] + (m // 16 * 16 + k_outer * 16 + threadIdx_x) * A_1.strides[1]]
        mask = T.allocate([1], "uint32", "local", align=4)
        t0 = T.allocate([1], "float32", "local", align=4)
        red_buf0[0] = B_rf[0]
        mask[0] = T.uint32(65535) << T.Cast("uint32", threadIdx_y % 2 * 16)
        t0[0] = T.tvm_warp_shuffle_down(mask[0], red_buf0[0], 8, 32, 32)
        red_buf0[0] = red_buf0[0] + t0[0]
        t0[0] = T.tvm_warp_shuffle_down(mask[0], red_buf0[0], 4, 32, 32)
        red_buf0[0] = red_buf0[0] + t0[0]
        t0[0] = T.tvm_warp_shuffle_down(mask[0], red_buf0[0], 2, 32, 32)
        red_buf0[0] = red_buf0[0] + t0[0]
        t0[0] = T.tvm_warp_shuffle_down(mask[0], red_buf0[0], 1, 32, 32)
        red_buf0[0] = red_buf0[0] + t0[0]
        red_buf0[0] = T.tvm_warp_shuffle(mask[0], red_buf0[0], threadIdx_y * 16, 32, 32)
        if threadIdx_x == 0 and blockIdx_x * 32 + threadIdx_y < n:
            B_1_1 = T.Buffer((B_1.strides[0] * n,), data=B_1.data, buffer_type="auto")
            B_1_1[(blockIdx_x * 32 + threadIdx_y) * B_1.strides[0]] = red_buf0[0]
