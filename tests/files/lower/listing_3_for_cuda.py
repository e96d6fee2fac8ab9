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
        threadIdx_x = T.launch_thread("threadIdx.x", 32)
        B_2 = T.Buffer((B_1.strides[0] * n,), data=B_1.data, buffer_type="auto")
        A_2 = T.Buffer((A_1.strides[0] * n,), data=A_1.data, buffer_type="auto")
        if blockIdx_x < n // 32:
            B_2[(blockIdx_x * 32 + threadIdx_x) * B_1.strides[0]] = T.float32(0)
            for k_outer, k_inner in T.grid(m // 16, 16):
                B_2[(blockIdx_x * 32 + threadIdx_x) * B_1.strides[0]] = B_2[(blockIdx_x * 32 + threadIdx_x) * B_1.strides[0]] + A_2[(blockIdx_x * 32 + threadIdx_x) * A_1.strides[0] + (k_outer * 16 + k_inner) * A_1.strides[1]]
            for k_outer, k_inner in T.grid((m % 16 + 15) // 16, 16):
                if m // 16 * 16 + k_outer * 16 + k_inner < m:
                    B_2[(blockIdx_x * 32 + threadIdx_x) * B_1.strides[0]] = B_2[(blockIdx_x * 32 + threadIdx_x) * B_1.strides[0]] + A_2[(blockIdx_x * 32 + threadIdx_x) * A_1.strides[0] + (m // 16 * 16 + k_outer * 16 + k_inner) * A_1.strides[1]]
        else:
            if blockIdx_x * 32 + threadIdx_x < n:
                B_2[(blockIdx_x * 32 + threadIdx_x) * B_1.strides[0]] = T.float32(0)
            for k_outer, k_inner in T.grid(m // 16, 16):
                if blockIdx_x * 32 + threadIdx_x < n:
                    B_2[(blockIdx_x * 32 + threadIdx_x) * B_1.strides[0]] = B_2[(blockIdx_x * 32 + threadIdx_x) * B_1.strides[0]] + A_2[(blockIdx_x * 32 + threadIdx_x) * A_1.strides[0] + (k_outer * 16 + k_inner) * A_1.strides[1]]
            for k_outer, k_inner in T.grid((m % 16 + 15) // 16, 16):
                if blockIdx_x * 32 + threadIdx_x < n:
                    if m // 16 * 16 + k_outer * 16 + k_inner < m:
                        B_2[(blockIdx_x * 32 + threadIdx_x) * B_1.strides[0]] = B_2[(blockIdx_x * 32 + threadIdx_x) * B_1.strides[0]] + A_2[(blockIdx_x * 32 + threadIdx_x) * A_1.strides[0] + (m // 16 * 16 + k_outer * 16 + k_inner) * A_1.strides[1]]
