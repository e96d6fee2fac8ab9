# test: schedule program=scaled_row_sum
s[T].compute_at(s[B], i)

# prints:
#   @T.prim_func
#   def main(A: T.handle, B: T.handle):
#       T.func_attr({"from_legacy_te_schedule": T.bool(True), "global_symbol": "main", "tir.noalias": T.bool(True)})
#       n, m = T.int32(), T.int32()
#       A_1 = T.match_buffer(A, (n, m), strides=("stride", "stride"), buffer_type="auto")
#       B_1 = T.match_buffer(B, (n,), strides=("stride",), buffer_type="auto")
#       for i in range(n):
#           T_1 = T.allocate([1], "float32", "global")
#           T_1[0] = T.float32(0)
#           for k in range(m):
#               T_1[0] = T_1[0] + A_1[i, k]
#           B_1[i] = T_1[0] * T.float32(2)
