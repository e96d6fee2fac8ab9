# test: schedule program=row_sum
k_outer, k_inner = s[B].split(k, factor=16)

# prints:
#   @T.prim_func
#   def main(A: T.handle, B: T.handle):
#       T.func_attr({"from_legacy_te_schedule": T.bool(True), "global_symbol": "main", "tir.noalias": T.bool(True)})
#       n, m = T.int32(), T.int32()
#       A_1 = T.match_buffer(A, (n, m), strides=("stride", "stride"), buffer_type="auto")
#       B_1 = T.match_buffer(B, (n,), strides=("stride",), buffer_type="auto")
#       for i in range(n):
#           B_1[i] = T.float32(0)
#           for k_outer, k_inner in T.grid((m + 15) // 16, 16):
#               if T.likely(k_outer * 16 + k_inner < m):
#                   B_1[i] = B_1[i] + A_1[i, k_outer * 16 + k_inner]
