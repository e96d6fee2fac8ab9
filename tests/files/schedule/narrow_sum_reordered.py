# test: schedule program=row_sum_f16
# Narrow floats are summed in float32 and converted once, at the store; partial results stay wide.
i_outer, i_inner = s[B].split(i, factor=4)
s[B].reorder(i_outer, k, i_inner)

# prints:
#   @T.prim_func
#   def main(A: T.handle, B: T.handle):
#       T.func_attr({"from_legacy_te_schedule": T.bool(True), "global_symbol": "main", "tir.noalias": T.bool(True)})
#       n, m = T.int32(), T.int32()
#       A_1 = T.match_buffer(A, (n, m), "float16", strides=("stride", "stride"), buffer_type="auto")
#       B_1 = T.match_buffer(B, (n,), "float16", strides=("stride",), buffer_type="auto")
#       for i_outer in range((n + 3) // 4):
#           B_acc = T.allocate([4], "float32", "local")
#           for i_inner_init in range(4):
#               if T.likely(i_outer * 4 + i_inner_init < n):
#                   B_acc[i_inner_init] = T.float32(0)
#           for k, i_inner in T.grid(m, 4):
#               if T.likely(i_outer * 4 + i_inner < n):
#                   B_acc[i_inner] = B_acc[i_inner] + T.Cast("float32", A_1[i_outer * 4 + i_inner, k])
#           for i_inner_store in range(4):
#               if T.likely(i_outer * 4 + i_inner_store < n):
#                   B_1[i_outer * 4 + i_inner_store] = T.Cast("float16", B_acc[i_inner_store])
