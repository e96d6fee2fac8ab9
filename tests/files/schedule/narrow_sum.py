# test: schedule program=row_sum_f16
# Narrow floats are summed in float32 and converted once, at the store; partial results stay wide.

# prints:
#   @T.prim_func
#   def main(A: T.handle, B: T.handle):
#       T.func_attr({"from_legacy_te_schedule": T.bool(True), "global_symbol": "main", "tir.noalias": T.bool(True)})
#       n, m = T.int32(), T.int32()
#       A_1 = T.match_buffer(A, (n, m), "float16", strides=("stride", "stride"), buffer_type="auto")
#       B_1 = T.match_buffer(B, (n,), "float16", strides=("stride",), buffer_type="auto")
#       for i in range(n):
#           B_acc = T.allocate([1], "float32", "local")
#           B_acc[0] = T.float32(0)
#           for k in range(m):
#               B_acc[0] = B_acc[0] + T.Cast("float32", A_1[i, k])
#           B_1[i] = T.Cast("float16", B_acc[0])
