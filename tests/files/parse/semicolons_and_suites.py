# test: parse form=flat
# Statements on one line are read, and printed a line each.
@T.prim_func
def f(A: T.Buffer((4,), "float32")):
    for i in range(4): A[i] = T.float32(0); A[i] = A[i] + T.float32(1)

# prints:
#   @T.prim_func
#   def f(A: T.Buffer((4,), "float32")):
#       for i in range(4):
#           A[i] = T.float32(0)
#           A[i] = A[i] + T.float32(1)
