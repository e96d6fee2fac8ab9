# test: schedule program=matmul
s[C].reorder(j, i)

# prints:
#   @T.prim_func
#   def main(A: T.handle, B: T.handle, C: T.handle):
#       T.func_attr({"from_legacy_te_schedule": T.bool(True), "global_symbol": "main", "tir.noalias": T.bool(True)})
#       n = T.int32()
#       A_1 = T.match_buffer(A, (n, 16), strides=("stride", "stride"), buffer_type="auto")
#       B_1 = T.match_buffer(B, (16, n), strides=("stride", "stride"), buffer_type="auto")
#       C_1 = T.match_buffer(C, (n, n), strides=("stride", "stride"), buffer_type="auto")
#       for j, i in T.grid(n, n):
#           C_1[i, j] = T.float32(0)
#           for k in range(16):
#               C_1[i, j] = C_1[i, j] + A_1[i, k] * B_1[k, j]
