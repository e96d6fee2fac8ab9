# test: lower after=vectorize_loops vector_bytes=64
# check: A[0:16] = A[0:16] + T.Broadcast(T.float32(1), 16)
# check-not: T.vectorized
@T.prim_func(form="Nest")
def add_one(A: T.Buffer((16,), "float32")):
    for i in T.vectorized(16):
        A[i] = A[i] + T.float32(1)
