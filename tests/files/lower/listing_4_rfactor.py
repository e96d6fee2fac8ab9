# test: parse canonical form=flat
@I.ir_module
class Module:
    @T.prim_func
    def main(A: T.handle, B: T.handle):
        n, m = T.int32(), T.int32()
        A_1 = T.match_buffer(A, (n, m), strides=("stride", "stride"), buffer_type="auto")
        B_1 = T.match_buffer(B, (n,), strides=("stride",), buffer_type="auto")
        B_rf = T.allocate([n * 16], "float32", "global")
        B_rf_1 = T.Buffer((16 * n,), data=B_rf)
        for k_inner, i in T.grid(16, n):
            B_rf_1[k_inner * n + i] = T.float32(0)
            for k_outer in range((m + 15) // 16):
                if T.likely(k_outer * 16 + k_inner < m):
                    A_2 = T.Buffer((A_1.strides[0] * n,), data=A_1.data, buffer_type="auto")
                    B_rf_1[k_inner * n + i] = B_rf_1[k_inner * n + i] + A_2[i * A_1.strides[0] + (k_outer * 16 + k_inner) * A_1.strides[1]]
        for ax0 in range(n):
            B_2 = T.Buffer((B_1.strides[0] * n,), data=B_1.data, buffer_type="auto")
            B_2[ax0 * B_1.strides[0]] = T.float32(0)
            for k_inner_v in range(16):
                B_2[ax0 * B_1.strides[0]] = B_2[ax0 * B_1.strides[0]] + B_rf_1[k_inner_v * n + ax0]
