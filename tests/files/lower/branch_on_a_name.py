# test: lower after=simplify
# A branch on a name goes where the value tells which side is taken; another stays.
@T.prim_func(form="Nest")
def told(A: T.Buffer((80,), "float32"), m: T.int32):
    for i in range(10):
        left: T.int32 = 100 - i * 8
        if left >= 8:
            A[i * 8] = T.float32(1)
        else:
            A[i * 8] = T.float32(2)
    for i in range(10):
        left: T.int32 = 100 - i * 8
        if left >= 101:
            A[i * 8 + 1] = T.float32(3)
        else:
            A[i * 8 + 1] = T.Cast("float32", left)
    for i in range(10):
        left: T.int32 = m - i * 8
        if left >= 8:
            A[i * 8 + 2] = T.float32(1)

# prints:
#   @T.prim_func(form="Nest")
#   def told(A: T.Buffer((80,), "float32"), m: T.int32):
#       for i in range(10):
#           left: T.int32 = 100 - i * 8
#           A[i * 8] = T.float32(1)
#       for i in range(10):
#           left: T.int32 = 100 - i * 8
#           A[i * 8 + 1] = T.Cast("float32", left)
#       for i in range(10):
#           left: T.int32 = m - i * 8
#           if left >= 8:
#               A[i * 8 + 2] = T.float32(1)
