# test: lower after=partition_loops
# check: for ko, ki in T.grid(29, 8)
# check-not: T.likely((ko * 8 + ki) // 3 < 79)
@T.prim_func(form="Nest")
def quotient(A: T.Buffer((240,), "float32")):
    for ko in range(30):
        for ki in range(8):
            if T.likely((ko * 8 + ki) // 3 < 79):
                A[ko * 8 + ki] = T.float32(0)

@T.prim_func(form="Nest")
def with_rest(A: T.Buffer((240,), "float32"), n: T.int32):
    for c in range(n):
        for ko in range(10):
            for ki in range(8):
                if T.likely(c * 26 + (ko * 8 + ki) // 3 < 79):
                    A[c * 78 + ko * 8 + ki] = T.float32(0)

# prints:
#   @T.prim_func(form="Nest")
#   def quotient(A: T.Buffer((240,), "float32")):
#       for ko, ki in T.grid(29, 8):
#           A[ko * 8 + ki] = T.float32(0)
#       for ki in range(5):
#           A[T.Mul(29, 8) + ki] = T.float32(0)
#
#   @T.prim_func(form="Nest")
#   def with_rest(A: T.Buffer((240,), "float32"), n: T.int32):
#       c_cut: T.int32 = T.max(T.min(3, n), 0)
#       c_cut_1: T.int32 = T.max(T.min(4, n), 0)
#       for c, ko, ki in T.grid(c_cut, 10, 8):
#           A[c * 78 + ko * 8 + ki] = T.float32(0)
#       for c in range(c_cut_1 - c_cut):
#           ko_cut: T.int32 = T.max(T.min((2 - c_cut * 39 - c * 39) // 4 + 29, 10), 0)
#           ko_cut_1: T.int32 = T.max(T.min((2 - c_cut * 39 - c * 39) // 4 + 30, 10), 0)
#           for ko, ki in T.grid(ko_cut, 8):
#               A[(c_cut + c) * 78 + ko * 8 + ki] = T.float32(0)
#           for ko in range(ko_cut_1 - ko_cut):
#               ki_cut: T.int32 = T.max(T.min(237 - ko_cut * 8 - ko * 8 - c_cut * 78 - c * 78, 8), 0)
#               for ki in range(ki_cut):
#                   A[(c_cut + c) * 78 + (ko_cut + ko) * 8 + ki] = T.float32(0)
