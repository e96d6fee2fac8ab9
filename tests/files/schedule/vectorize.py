# test: schedule program=twice
j_outer, j_inner = s[B].split(j, factor=16)
s[B].vectorize(j_inner)

# prints:
#   @T.prim_func
#   def main(A: T.Buffer((64, 48), "float32"), B: T.Buffer((64, 48), "float32")):
#       T.func_attr({"from_legacy_te_schedule": T.bool(True), "global_symbol": "main", "tir.noalias": T.bool(True)})
#       for i, j_outer in T.grid(64, 3):
#           for j_inner in T.vectorized(16):
#               B[i, j_outer * 16 + j_inner] = A[i, j_outer * 16 + j_inner] * T.float32(2)
