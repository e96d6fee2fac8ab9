# test: lower after=vectorize_loops
# check: if n > 3
# check: B[0:4] = A[0:4]
# check: else
# check: B[0:4] = T.Broadcast(T.float32(0), 4)
@T.prim_func(form="Nest")
def chosen(n: T.int32, A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    for i in T.vectorized(4):
        B[i] = T.if_then_else(n > 3, A[i], T.float32(0))
