# test: schedule program=twice
i_outer, j_outer, i_inner, j_inner = s[B].tile(i, j, 8, 16)

# prints:
#   @T.prim_func
#   def main(A: T.Buffer((64, 48), "float32"), B: T.Buffer((64, 48), "float32")):
#       T.func_attr({"from_legacy_te_schedule": T.bool(True), "global_symbol": "main", "tir.noalias": T.bool(True)})
#       for i_outer, j_outer, i_inner, j_inner in T.grid(8, 3, 8, 16):
#           B[i_outer * 8 + i_inner, j_outer * 16 + j_inner] = A[i_outer * 8 + i_inner, j_outer * 16 + j_inner] * T.float32(2)
