# test: lower after=partition_loops
# check: for ko, ki in T.grid(6, 16)
# check-not: if ko * 16 + ki < 100
@T.prim_func(form="Nest")
def guarded(A: T.Buffer((100,), "float32")):
    for ko in range(7):
        for ki in range(16):
            if T.likely(ko * 16 + ki < 100):
                A[ko * 16 + ki] = T.float32(0)

# prints:
#   @T.prim_func(form="Nest")
#   def guarded(A: T.Buffer((100,), "float32")):
#       for ko, ki in T.grid(6, 16):
#           A[ko * 16 + ki] = T.float32(0)
#       for ki in range(4):
#           A[T.Mul(6, 16) + ki] = T.float32(0)
