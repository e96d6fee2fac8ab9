# test: schedule program=row_sum
i_outer, i_inner = s[B].split(i, nparts=4)

# prints:
#   @T.prim_func
#   def main(A: T.handle, B: T.handle):
#       T.func_attr({"from_legacy_te_schedule": T.bool(True), "global_symbol": "main", "tir.noalias": T.bool(True)})
#       n, m = T.int32(), T.int32()
#       A_1 = T.match_buffer(A, (n, m), strides=("stride", "stride"), buffer_type="auto")
#       B_1 = T.match_buffer(B, (n,), strides=("stride",), buffer_type="auto")
#       for i_outer, i_inner in T.grid(4, (n + 3) // 4):
#           if T.likely(i_outer * ((n + 3) // 4) + i_inner < n):
#               B_1[i_outer * ((n + 3) // 4) + i_inner] = T.float32(0)
#           for k in range(m):
#               if T.likely(i_outer * ((n + 3) // 4) + i_inner < n):
#                   B_1[i_outer * ((n + 3) // 4) + i_inner] = B_1[i_outer * ((n + 3) // 4) + i_inner] + A_1[i_outer * ((n + 3) // 4) + i_inner, k]
