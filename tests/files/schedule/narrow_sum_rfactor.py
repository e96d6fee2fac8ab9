# test: schedule program=row_sum_f16
# Narrow floats are summed in float32 and converted once, at the store; partial results stay wide.
k_outer, k_inner = s[B].split(k, factor=16)
B_rf = s.rfactor(B, k_inner)

# prints:
#   @T.prim_func
#   def main(A: T.handle, B: T.handle):
#       T.func_attr({"from_legacy_te_schedule": T.bool(True), "global_symbol": "main", "tir.noalias": T.bool(True)})
#       n, m = T.int32(), T.int32()
#       A_1 = T.match_buffer(A, (n, m), "float16", strides=("stride", "stride"), buffer_type="auto")
#       B_1 = T.match_buffer(B, (n,), "float16", strides=("stride",), buffer_type="auto")
#       B_rf = T.allocate([16, n], "float32", "global")
#       for k_inner, i in T.grid(16, n):
#           B_rf[k_inner, i] = T.float32(0)
#           for k_outer in range((m + 15) // 16):
#               if T.likely(k_outer * 16 + k_inner < m):
#                   B_rf[k_inner, i] = B_rf[k_inner, i] + T.Cast("float32", A_1[i, k_outer * 16 + k_inner])
#       for ax0 in range(n):
#           B_acc = T.allocate([1], "float32", "local")
#           B_acc[0] = T.float32(0)
#           for k_inner_v in range(16):
#               B_acc[0] = B_acc[0] + B_rf[k_inner_v, ax0]
#           B_1[ax0] = T.Cast("float16", B_acc[0])
